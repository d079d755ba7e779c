// The live page: polls state.json, and shows nodes, queue, decisions, plugins and one attempt.

import { showCharts } from "./charts.js";
import { $, brief, clock, duration, integers, inUse, make, options, say, shown, table, whole } from "./elements.js";
import { nodesVersion, setUpNodes, showNodes, takeNodes } from "./nodes.js";

const EVERY = 1000;
const SLOWEST = 10_000;

const here = (path) => new URL(path, import.meta.url);

let state = null; // what state.json said last
const tags = new Map(); // path -> ETag of what is shown
let wait = EVERY;
let timer = 0;
let paused = false;
let polling = false;

async function get(path) {
  const headers = tags.has(path) ? { "If-None-Match": tags.get(path) } : {};
  const answer = await fetch(here(path), { headers, cache: "no-store", signal: AbortSignal.timeout(40_000) });
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Error(await reason(answer));
  return [await answer.json(), answer.headers.get("ETag")];
}

async function reason(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).message ?? text;
  } catch {
    return text.trim() || `answered with ${answer.status}`;
  }
}

async function poll() {
  clearTimeout(timer);
  if (polling) return;
  polling = true;
  try {
    const found = await get("state.json");
    if (found && (await take(found[0]))) tags.set("state.json", found[1]);
    connection("Live", false);
    wait = EVERY;
  } catch (error) {
    connection(`Lost: ${error.message}`, true);
    wait = Math.min(wait * 2, SLOWEST);
  }
  polling = false;
  if (!paused && !document.hidden) timer = setTimeout(poll, wait);
}

function connection(text, lost) {
  say($("connection"), paused ? "Paused" : text);
  $("connection").classList.toggle("lost", lost);
}

// Shows a state; answers whether that could be done.
async function take(fresh) {
  if (fresh.nodes !== nodesVersion()) {
    const found = await get("nodes.json");
    if (found) {
      const [content, tag] = found;
      tags.set("nodes.json", tag);
      takeNodes(content, tag.replaceAll('"', ""));
    }
    // The nodes changed once more meanwhile: the next state is about those.
    if (fresh.nodes !== nodesVersion()) return false;
  }
  state = fresh;
  show();
  return true;
}

function show() {
  say($("role"), state.leads ? "leader" : "standby");
  showFigures();
  showNodes(state);
  showCharts(state.history);
  showDecisions();
  showPlugins();
  showAttempt();
}

function showFigures() {
  const { active, backoff, unschedulable, gated } = state.queue;
  const used = state.resources.filter(({ name, allocatable }) => name !== "pods" && allocatable > 0).slice(0, 3);
  const rate = integers(state.history.series.scheduled, 4).at(-1) ?? 0;
  const figures = [
    ["nodes", whole.format(state.nodeCount)],
    ["pods on nodes", whole.format(state.podCount)],
    ...used.map(({ name, allocatable, requested }) =>
      [`of ${brief(name)} requested`, `${Math.round((100 * requested) / allocatable)} %`]),
    ["pods waiting", whole.format(active + backoff + unschedulable + gated)],
    ["pods scheduled a second", whole.format(rate)],
  ];
  const list = $("figures");
  while (list.children.length > figures.length) list.lastChild.remove();
  figures.forEach(([name, value], i) => {
    const item = list.children[i] ?? list.appendChild(make("div"));
    if (!item.children.length) item.append(make("dt"), make("dd"));
    say(item.children[0], name);
    say(item.children[1], value);
  });
}

// ---------------------------------------------------------------- decisions, plugins, attempts

function showDecisions() {
  if (inUse($("pods"))) return;
  const pending = $("which").value === "pending";
  const headings = [["Pod", ""], ["Profile", ""], [pending ? "Why it waits" : "What came of it", "wide"],
    ["Attempt", "number"], ["Took", "number"], ["At", "number"], ["", ""]];
  const lines = (pending ? state.pending : state.decisions).map((each) => {
    const { namespace, name, result, node, message } = each;
    const scheduled = result === "scheduled";
    return [
      `${namespace}/${name}`,
      each.profile,
      {
        text: scheduled ? `on ${node}, one of ${whole.format(each.feasible)} that fit` : message || result,
        className: scheduled ? "wide good" : "wide",
      },
      each.attempt,
      duration(Math.round(each.took * 1000)),
      clock.format(each.at * 1000),
      { text: `Explain ${namespace}/${name}`, press: () => explainPod(namespace, name) },
    ];
  });
  table($("pods"), headings, lines, pending ? "No pod waits after an attempt that failed." : "No attempt yet.");
}

function showPlugins() {
  const headings = [["Plugin", ""], ["Version", ""], ["State", ""], ["Circuit", ""], ["Profiles", ""],
    ["Calls", "number"], ["Median", "number"], ["99th percentile", "number"], ["Last error", "wide"]];
  const lines = state.plugins.map((each) => [
    each.shadow ? `${each.name} (shadow)` : each.name,
    each.version,
    { text: each.state, className: each.state === "ready" ? "good" : "bad" },
    { text: each.circuit, className: each.circuit === "closed" ? "good" : "bad" },
    each.profiles.join(", "),
    whole.format(each.calls),
    each.calls ? duration(each.p50) : "",
    each.calls ? duration(each.p99) : "",
    each.error,
  ]);
  table($("sidecars"), headings, lines, "No sidecar is attached.");
}

function keyOf({ pod, at }) {
  return `${pod} ${at}`;
}

function titleOf({ at, pod, result, took }) {
  return `${clock.format(at * 1000)} ${pod}, ${result}, ${duration(took)}`;
}

function showAttempt() {
  const choice = $("attempts");
  if (document.activeElement !== choice) {
    options(choice, state.attempts.map((each) => [keyOf(each), titleOf(each)]));
    if ($("latest").checked && choice.options.length) choice.selectedIndex = 0;
  }
  const attempt = state.attempts.find((each) => keyOf(each) === choice.value);
  if (attempt) {
    const node = attempt.node ? ` on ${attempt.node}` : "";
    const trace = attempt.traceId ? ` Trace ${attempt.traceId}.` : "";
    const left = attempt.leftOut ? ` ${attempt.leftOut} more steps are left out.` : "";
    say($("attempt-text"), `${attempt.pod}, profile ${attempt.profile}: ${attempt.result}${node}. Queued for `
      + `${duration(attempt.queued)}, took ${duration(attempt.took)}.${trace}${left}`);
  } else say($("attempt-text"), "");
  const length = Math.max(attempt?.took ?? 1, 1);
  const lines = (attempt?.steps ?? []).map(([name, depth, started, took]) => [
    `${"\u2003".repeat(depth)}${name}`,
    duration(started),
    duration(took),
    { bar: [(100 * Math.min(started, length)) / length, (100 * Math.min(took, length)) / length] },
  ]);
  const headings = [["Step", ""], ["Began after", "number"], ["Took", "number"], ["", "bar"]];
  table($("steps"), headings, lines, "No attempt was seen yet.");
}

// ---------------------------------------------------------------- explanations

function explainPod(namespace, name) {
  explain(`Pod ${namespace}/${name}`, `namespaces/${encodeURIComponent(namespace)}/podexplanations`, name);
}

function explainNode(name) {
  explain(`Node ${name}`, "nodeexplanations", name);
}

async function explain(title, resource, name) {
  const body = $("explanation-body");
  say($("explained"), title);
  body.replaceChildren(make("p", "", "Asking the scheduler…"));
  $("explanation").showModal();
  try {
    const url = here(`../apis/explain.berth.dev/v1alpha1/${resource}/${encodeURIComponent(name)}`);
    const answer = await fetch(url, { cache: "no-store", headers: { Accept: "text/plain" } });
    if (!answer.ok) throw new Error(await reason(answer));
    const page = await answer.text();
    if ($("explained").textContent !== shown(title)) return;
    body.replaceChildren(make("pre", "", page));
  } catch (error) {
    body.replaceChildren(make("p", "bad", `Not explained: ${error.message}`));
  }
}

// ---------------------------------------------------------------- what the reader does

function pause() {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  connection("Live", false);
  if (paused) clearTimeout(timer);
  else poll();
}

setUpNodes(explainNode);
$("pause").addEventListener("click", pause);
$("close").addEventListener("click", () => $("explanation").close());
$("which").addEventListener("change", () => state && showDecisions());
$("attempts").addEventListener("change", () => { $("latest").checked = false; if (state) showAttempt(); });
$("latest").addEventListener("change", () => state && showAttempt());
new ResizeObserver(() => state && showCharts(state.history)).observe($("lengths"));
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) poll(); });
poll();
