// The heat map of the nodes, its table, and the selected node.

import { $, NOT_OFFERED, amount, brief, bytes, integers, make } from "./elements.js";
import { options, percent, say, table, whole } from "./elements.js";
import { TITLE, arranged, beyond, cellAt } from "./layout.js";

const ROWS_OF_A_PAGE = 50;

let state = null; // what state.json said last
let nodes = { version: "", names: [], groupings: [] };
let layout = { groups: [], order: [], xs: [], ys: [], size: 10, step: 12 };
let shares = new Map(); // resource -> Uint8Array, a percentage for each node
let cordoned = new Uint8Array(); // a bit for each node
let selected = -1; // a place in layout.order
let chosen = ""; // the name of the selected node
let page = 0;

export function nodesVersion() {
  return nodes.version;
}

// Takes over which node each place is.
export function takeNodes(content, version) {
  const groupings = content.groupings.map((each) => ({ ...each, of: integers(each.of, 2) }));
  nodes = { version, names: content.names, groupings };
  options($("grouping"), [
    ...groupings.map(({ name, label }) => [label, `${name} (${label})`]),
    ["", "nothing"],
  ]);
  arrange();
}

export function showNodes(fresh) {
  state = fresh;
  shares = new Map(state.resources.map((each) => [each.name, bytes(each.shares)]));
  cordoned = bytes(state.cordoned);
  options($("resource"), state.resources.map(({ name }) => [name, name]));
  showResource();
}

function showResource() {
  showTotal();
  paint();
  showNode();
  showTable();
}

function showTotal() {
  const { name, allocatable, requested } = state.resources.find((each) => each.name === $("resource").value);
  const share = allocatable ? ` (${Math.round((100 * requested) / allocatable)} %)` : "";
  say($("total"), `${name}: ${amount(name, requested)} of ${amount(name, allocatable)} requested${share}`);
}

function arrange() {
  const grouping = nodes.groupings.find(({ label }) => label === $("grouping").value);
  const titles = grouping ? [...grouping.values, `no ${grouping.name}, or another one`] : ["all nodes"];
  const groups = titles.map((title, i) => ({ title, places: [], last: Number(i === titles.length - 1) }));
  nodes.names.forEach((_, at) => groups[grouping ? grouping.of[at] : 0].places.push(at));
  layout = arranged(groups, nodes.names, Math.max($("map").clientWidth - 18, 120));
  select(chosen ? layout.order.findIndex((at) => nodes.names[at] === chosen) : -1);
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  const parts = (name) => named(name).match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
  const stops = ["--cell-0", "--cell-50", "--cell-100"].map(parts);
  const scale = Array.from({ length: 101 }, (_, share) => {
    const [from, to] = share < 50 ? stops : stops.slice(1);
    const weight = (share < 50 ? share : share - 50) / 50;
    return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * weight)).join(" ")})`;
  });
  const [over, none, line, text] = ["--cell-over", "--cell-none", "--line", "--text"].map(named);
  return { scale, over, none, line, text, focus: named("--focus"), quiet: named("--quiet") };
}

function paint() {
  if (!state || !layout.order.length) return;
  const colour = colours();
  const canvas = $("cells");
  const dots = devicePixelRatio || 1;
  const [width, height] = [layout.width, Math.max(layout.height, 1)];
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  const of = shares.get($("resource").value) ?? new Uint8Array();
  paintTitles(context, colour, of);
  layout.order.forEach((at, i) => paintCell(context, colour, of, at, layout.xs[i], layout.ys[i]));
  paintSelected(context, colour);
  paintLegend(colour);
}

function paintTitles(context, colour, of) {
  context.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
  context.textBaseline = "middle";
  for (const { title, places, x, y, width } of layout.groups) {
    const offering = places.filter((at) => of[at] !== NOT_OFFERED);
    const mean = offering.reduce((sum, at) => sum + of[at], 0) / Math.max(offering.length, 1);
    const figures = `${whole.format(places.length)}${offering.length ? `, ${Math.round(mean)} %` : ""}`;
    const figuresWidth = context.measureText(figures).width;
    const shown = fitting(context, title, width - figuresWidth - 8);
    context.fillStyle = colour.text;
    context.fillText(shown, x, y + TITLE / 2);
    context.fillStyle = colour.quiet;
    context.fillText(figures, x + context.measureText(shown).width + 8, y + TITLE / 2);
  }
}

function fitting(context, text, width) {
  const letters = [...text.slice(0, 80)];
  if (letters.length === text.length && context.measureText(text).width <= width) return text;
  while (letters.length && context.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("")}…`;
}

function paintCell(context, colour, of, at, x, y) {
  const { size } = layout;
  const share = of[at] ?? NOT_OFFERED;
  context.fillStyle = share === NOT_OFFERED ? colour.none : share > 100 ? colour.over : colour.scale[share];
  context.fillRect(x, y, size, size);
  if (share === NOT_OFFERED) {
    context.strokeStyle = colour.line;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  }
  if (isCordoned(at)) {
    context.strokeStyle = colour.text;
    context.lineWidth = size > 10 ? 1.5 : 1;
    context.beginPath();
    context.moveTo(x + 1, y + size - 1);
    context.lineTo(x + size - 1, y + 1);
    context.stroke();
  }
}

function isCordoned(at) {
  return Boolean(cordoned[at >> 3] & (128 >> (at & 7)));
}

function paintSelected(context, colour) {
  if (selected < 0) return;
  const [x, y] = [layout.xs[selected], layout.ys[selected]];
  for (const [stroke, width] of [[colour.text, 5], [colour.focus, 3]]) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.strokeRect(x, y, layout.size, layout.size);
  }
}

function paintLegend(colour) {
  const legend = $("legend");
  if (!legend.children.length) {
    const ends = make("div", "ends");
    ends.append(make("span", "", "0 %"), make("span", "", "requested"), make("span", "", "100 %"));
    const marks = make("div", "marks");
    for (const [name, text] of [["over", "above 100 %"], ["none", "not offered"], ["cordoned", "cordoned"]]) {
      const mark = make("span", "", text);
      mark.prepend(make("i", name));
      marks.append(mark);
    }
    legend.append(make("div", "scale"), ends, marks);
  }
  const steps = colour.scale.filter((_, share) => share % 10 === 0);
  legend.firstChild.style.background = `linear-gradient(to right, ${steps.join(",")})`;
}

function select(index) {
  selected = index;
  chosen = selected < 0 ? "" : nodes.names[layout.order[selected]];
  paint();
  showNode();
}

// Selects by the reader's own hand, who hears of it.
function choose(index) {
  select(index);
  if (state) say($("spoken"), described(layout.order[selected]));
}

function described(at) {
  const figures = state.resources.map(({ name }) => `${name} ${percent(shares.get(name)[at])}`);
  return [nodes.names[at], ...(isCordoned(at) ? ["cordoned"] : []), ...figures].join(", ");
}

function showNode() {
  const box = $("node");
  $("explain-node").hidden = selected < 0;
  if (selected < 0 || !state) {
    box.dataset.key = "";
    box.replaceChildren(make("p", "hint", "No node is selected."));
    return;
  }
  const at = layout.order[selected];
  const key = `${described(at)}\n${nodes.version}`;
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const name = make("p");
  name.append(make("strong", "", nodes.names[at]));
  const list = make("dl");
  for (const { name: resource } of state.resources) {
    list.append(make("dt", "", brief(resource)), make("dd", "", percent(shares.get(resource)[at])));
  }
  for (const { name: kind, values, of } of nodes.groupings) {
    if (of[at] < values.length) list.append(make("dt", "", kind), make("dd", "", values[of[at]]));
  }
  const cordoned = isCordoned(at) ? [make("p", "bad", "Cordoned: no new pods.")] : [];
  box.replaceChildren(name, list, ...cordoned);
}

function move(event, explain) {
  const { groups, order } = layout;
  if (!order.length || !state) return;
  const group = groups.findLastIndex(({ first }) => first <= selected);
  const moves = {
    ArrowLeft: () => Math.max(0, selected - 1),
    ArrowRight: () => Math.min(order.length - 1, selected + 1),
    ArrowUp: () => beyond(layout, selected, -1),
    ArrowDown: () => beyond(layout, selected, 1),
    Home: () => 0,
    End: () => order.length - 1,
    PageUp: () => groups[Math.max(0, selected > groups[group].first ? group : group - 1)].first,
    PageDown: () => groups[Math.min(groups.length - 1, group + 1)].first,
  };
  if (event.key === "Enter" && selected >= 0) explain(chosen);
  else if (event.key in moves) choose(selected < 0 ? 0 : moves[event.key]());
  else return;
  event.preventDefault();
  reveal();
}

function reveal() {
  if (selected < 0) return;
  const [map, y] = [$("map"), layout.ys[selected]];
  if (y < map.scrollTop) map.scrollTop = y - TITLE;
  const below = y + layout.step - map.clientHeight;
  if (below > map.scrollTop) map.scrollTop = below + 4;
}

function under(event) {
  const box = $("cells").getBoundingClientRect();
  return cellAt(layout, event.clientX - box.left, event.clientY - box.top);
}

function showTable() {
  if (!state || !$("table").open) return;
  const wanted = $("filter").value.toLowerCase();
  const grouping = nodes.groupings.find(({ label }) => label === $("grouping").value);
  const found = layout.order.filter((at) => nodes.names[at].toLowerCase().includes(wanted));
  page = Math.max(0, Math.min(page, Math.ceil(found.length / ROWS_OF_A_PAGE) - 1));
  const first = page * ROWS_OF_A_PAGE;
  const shown = found.slice(first, first + ROWS_OF_A_PAGE);
  const headings = [["Node", ""], ...(grouping ? [[grouping.name, ""]] : [])];
  headings.push(...state.resources.map(({ name }) => [name, "number"]), ["Cordoned", ""]);
  const lines = shown.map((at) => [
    nodes.names[at],
    ...(grouping ? [grouping.values[grouping.of[at]] ?? ""] : []),
    ...state.resources.map(({ name }) => percent(shares.get(name)[at])),
    isCordoned(at) ? "yes" : "",
  ]);
  table($("rows"), headings, lines, "No node has that in its name.");
  say($("extent"), shown.length ? `${first + 1} to ${first + shown.length} of ${found.length}` : "none");
  $("earlier").disabled = page === 0;
  $("later").disabled = first + ROWS_OF_A_PAGE >= found.length;
}

function turn(by) {
  page += by;
  showTable();
}

// Lets the reader choose; `explain` is called with the name of a node.
export function setUpNodes(explain) {
  const map = $("map");
  map.addEventListener("keydown", (event) => move(event, explain));
  map.addEventListener("click", (event) => under(event) >= 0 && choose(under(event)));
  map.addEventListener("mousemove", (event) => {
    map.title = under(event) >= 0 ? nodes.names[layout.order[under(event)]] : "";
  });
  $("explain-node").addEventListener("click", () => explain(chosen));
  $("resource").addEventListener("change", () => state && showResource());
  $("grouping").addEventListener("change", () => { arrange(); showTable(); });
  $("filter").addEventListener("input", () => { page = 0; showTable(); });
  $("earlier").addEventListener("click", () => turn(-1));
  $("later").addEventListener("click", () => turn(1));
  $("table").addEventListener("toggle", showTable);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new ResizeObserver(arrange).observe(map);
}
