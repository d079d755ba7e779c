// Where each node's cell is: groups as blocks on shelves, in the largest size that leaves all in sight.

import { byName } from "./elements.js";

export const TITLE = 22;
const NARROWEST = 150;
const EVEN = 4;
const BESIDE = 16;
const BELOW = 8;
const SIZES = [30, 26, 22, 18, 15, 13, 11, 9, 8, 7, 6];
const TALLEST = 520;

// The groups' blocks, and the places of the nodes in the order of their cells; each group is a title and places.
export function arranged(groups, names, width) {
  const filled = groups
    .filter(({ places }) => places.length)
    .sort((one, other) => one.last - other.last || byName(one.title, other.title));
  for (const { places } of filled) places.sort((one, other) => byName(names[one], names[other]));
  const sizes = SIZES.map((size) => [size, shelves(filled, size, width)]);
  const [size, { blocks, height }] = sizes.find(([, each]) => each.height <= TALLEST) ?? sizes.at(-1);
  const order = filled.flatMap(({ places }) => places);
  return { ...cellsOf(blocks, size + gap(size)), groups: blocks, order, size, width, height };
}

// Blocks of cells, one for each group, on shelves from left to right.
function shelves(groups, size, width) {
  const step = size + gap(size);
  const fit = (room) => Math.max(1, Math.floor(room / step));
  // Few groups share the width evenly; of many, each is about as wide as it is high.
  const share = (width - BESIDE * (groups.length - 1)) / groups.length;
  const even = groups.length <= EVEN && (groups.length === 1 || share >= NARROWEST) ? fit(share) : 0;
  let [x, y, tallest, first] = [0, 0, 0, 0];
  const blocks = groups.map((group) => {
    const count = group.places.length;
    const own = Math.min(fit(width), Math.max(Math.ceil(Math.sqrt(count * 2)), Math.ceil(NARROWEST / step)));
    const columns = even || own;
    const block = { ...group, first, columns, width: columns * step };
    if (x && x + block.width > width) [x, y, tallest] = [0, y + tallest, 0];
    Object.assign(block, { x, y });
    x += block.width + BESIDE;
    tallest = Math.max(tallest, TITLE + Math.ceil(count / columns) * step + BELOW);
    first += count;
    return block;
  });
  return { blocks, height: y + tallest };
}

function cellsOf(blocks, step) {
  const xs = [];
  const ys = [];
  for (const { x, y, columns, places } of blocks) {
    for (let i = 0; i < places.length; i += 1) {
      xs.push(x + (i % columns) * step);
      ys.push(y + TITLE + Math.floor(i / columns) * step);
    }
  }
  return { xs, ys, step };
}

function gap(size) {
  return size > 10 ? 2 : 1;
}

// The nearest cell above (-1) or below (1) that one; that one itself where there is none.
export function beyond({ xs, ys }, from, direction) {
  let [best, least] = [from, Infinity];
  for (let i = 0; i < xs.length; i += 1) {
    const down = (ys[i] - ys[from]) * direction;
    // Rows before columns: a cell in the next row is nearer than one straight ahead in the row after it.
    const distance = down * 1000 + Math.abs(xs[i] - xs[from]);
    if (down > 0 && distance < least) [best, least] = [i, distance];
  }
  return best;
}

// The cell at that point of the canvas, -1 for none.
export function cellAt({ xs, ys, step }, x, y) {
  return xs.findIndex((left, i) => x >= left && x < left + step && y >= ys[i] && y < ys[i] + step);
}
