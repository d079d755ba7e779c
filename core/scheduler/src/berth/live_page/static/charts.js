// Queue lengths and rates over the last minutes, as lines.

import { $, draw, integers, make, say, whole } from "./elements.js";

const LENGTHS = [
  ["active", "ready"],
  ["backoff", "backing off"],
  ["unschedulable", "unschedulable"],
  ["gated", "gated"],
];
const RATES = [["attempts", "attempts"], ["scheduled", "scheduled"]];

export function showCharts(history) {
  chart(history, "lengths", LENGTHS, "Pods waiting now");
  chart(history, "rates", RATES, "Pods a second now");
}

function chart(history, id, series, heading) {
  const values = series.map(([name]) => integers(history.series[name], 4));
  const said = (of) => series.map(([, title], i) => `${title} ${whole.format(of(values[i]))}`).join(", ");
  const latest = said((points) => points.at(-1) ?? 0);
  const most = said(largest);
  say($(`${id}-text`), `${heading}: ${latest}. Most in five minutes: ${most}.`);
  keys($(`${id}-legend`), series, values);
  plot($(id), values, history.seconds);
}

function largest(points) {
  return points.reduce((one, other) => Math.max(one, other), 0);
}

function keys(list, series, values) {
  series.forEach(([, title], i) => {
    let item = list.children[i];
    if (!item) {
      item = list.appendChild(make("li"));
      const line = draw("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" });
      line.append(draw("line", { x1: 0, x2: 28, y1: 5, y2: 5, class: `series-${i + 1}` }));
      item.append(line, make("span", "", `${title} `), make("b"));
    }
    say(item.lastChild, whole.format(values[i].at(-1) ?? 0));
  });
}

function plot(svg, values, seconds) {
  const [width, height, left, bottom, top] = [svg.clientWidth || 600, svg.clientHeight || 170, 44, 20, 8];
  const most = ceiling(largest(values.flat()));
  const x = (i, count) => left + ((width - left - 4) * (seconds - count + i)) / (seconds - 1);
  const y = (value) => height - bottom - ((height - bottom - top) * value) / most;
  const parts = [0, 0.5, 1].flatMap((share) => {
    const text = draw("text", { x: left - 6, y: y(most * share) + 4, "text-anchor": "end" });
    text.textContent = whole.format(most * share);
    return [draw("line", { x1: left, x2: width, y1: y(most * share), y2: y(most * share), class: "grid" }), text];
  });
  for (const [minutes, anchor] of [[5, "start"], [2.5, "middle"], [0, "end"]]) {
    const at = width - 4 - ((width - left - 4) * minutes) / 5;
    const text = draw("text", { x: at, y: height - 4, "text-anchor": anchor });
    text.textContent = minutes ? `${minutes} minutes ago` : "now";
    parts.push(text);
  }
  values.forEach((points, i) => {
    const line = points.map((value, at) => `${x(at, points.length).toFixed(1)},${y(value).toFixed(1)}`);
    if (line.length) parts.push(draw("path", { d: `M${line.join("L")}`, class: `series-${i + 1}` }));
  });
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(...parts);
}

// The next even number of one digit and noughts, so that the half of it is a whole number.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 2)));
  return [2, 4, 6, 8, 10, 20].map((digit) => digit * power).find((each) => each >= value);
}
