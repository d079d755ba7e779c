// Elements and texts of the page. Whatever the cluster names gets in as text, never as markup.

export const NOT_OFFERED = 255;

export const $ = (id) => document.getElementById(id);
export const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
export const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
export const byName = new Intl.Collator(undefined, { numeric: true }).compare;
const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });

// Users write parts of texts: what hides, or turns the direction of writing, is shown as JSON writes it, and so are
// marks upon four marks, which would cover the lines around them.
const HIDDEN = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]|(?<=\p{M}{4})\p{M}/gu;
const escaped = (found) =>
  found.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

export function shown(text) {
  return String(text).replace(HIDDEN, escaped);
}

export function say(element, text) {
  const visible = shown(text);
  if (element.textContent !== visible) element.textContent = visible;
}

export function make(name, className = "", text = "") {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text) element.textContent = shown(text);
  return element;
}

export function draw(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export function integers(text, width) {
  const view = new DataView(bytes(text).buffer);
  const read = width === 2 ? (at) => view.getUint16(at, true) : (at) => view.getUint32(at, true);
  return Array.from({ length: view.byteLength / width }, (_, i) => read(i * width));
}

export function amount(resource, value) {
  if (resource === "cpu") return `${short.format(value / 1000)} cores`;
  if (resource !== "memory" && resource !== "ephemeral-storage") return whole.format(value);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${short.format(value)} ${units[unit]}`;
}

export function duration(micros) {
  if (micros < 1000) return `${micros} µs`;
  return micros < 1e6 ? `${short.format(micros / 1000)} ms` : `${short.format(micros / 1e6)} s`;
}

// The name without the domain that it belongs to.
export function brief(resource) {
  return resource.slice(resource.lastIndexOf("/") + 1);
}

export function percent(share = NOT_OFFERED) {
  return share === NOT_OFFERED ? "not offered" : `${share} %`;
}

// Puts lines into a table in place, so that a reader's position and focus stay where they are.
export function table(element, headings, lines, empty) {
  if (!element.tHead) {
    element.createTHead().insertRow();
    element.createTBody();
  }
  cells(element.tHead.rows[0], headings.map(([text, className]) => ({ text, className, heading: "col" })));
  const body = element.tBodies[0];
  const shown = lines.length ? lines : [[{ text: empty, className: "empty", span: headings.length }]];
  while (body.rows.length > shown.length) body.deleteRow(-1);
  shown.forEach((line, i) => {
    const row = body.rows[i] ?? body.insertRow();
    const column = (cell, at) => ({ className: headings[at][1], heading: at ? "" : "row", ...cell });
    cells(row, line.map((cell, at) => column(typeof cell === "object" ? cell : { text: String(cell) }, at)));
  });
}

function cells(row, wanted) {
  while (row.cells.length > wanted.length) row.deleteCell(-1);
  wanted.forEach(({ text = "", className = "", heading = "", span = 1, press, bar }, i) => {
    const name = heading && span === 1 ? "TH" : "TD";
    let cell = row.cells[i];
    if (!cell || cell.tagName !== name) {
      const made = document.createElement(name);
      if (cell) cell.replaceWith(made);
      else row.append(made);
      cell = made;
      if (name === "TH") cell.scope = heading;
    }
    cell.className = className;
    cell.colSpan = span;
    if (press) button(cell, text, press);
    else if (bar) place(cell, bar);
    else say(cell, text);
  });
}

function button(cell, text, press) {
  const found = cell.querySelector("button") ?? cell.appendChild(make("button"));
  found.type = "button";
  say(found, "Explain");
  found.setAttribute("aria-label", shown(text));
  found.onclick = press;
}

function place(cell, [left, width]) {
  const found = cell.querySelector("span") ?? cell.appendChild(make("span"));
  found.style.left = `${left}%`;
  found.style.width = `${width}%`;
}

// Whether someone reads or points at it: what moves away under the pointer cannot be pressed.
export function inUse(element) {
  return element.matches(":hover") || element.contains(document.activeElement);
}

export function options(select, wanted) {
  const current = [...select.options].map((option) => `${option.value}\n${option.text}`).join("\n");
  if (current === wanted.map(([value, text]) => `${value}\n${shown(text)}`).join("\n")) return;
  const chosen = select.options.length ? select.value : null;
  select.replaceChildren(...wanted.map(([value, text]) => new Option(shown(text), value)));
  if (wanted.some(([value]) => value === chosen)) select.value = chosen;
}
