import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Server } from "@berth/plugin-sdk";
import { Host, makeNode, makePod, running } from "@berth/plugin-sdk/testing";
import { loadAware } from "../src/plugin.ts";
import { answering, changed, nodeMetrics, vector } from "./kit.ts";

const parts = { allocatable: { cpu: "4", memory: "8Gi" } };
const nodes = [makeNode("idle", parts), makeNode("half", parts), makeNode("busy", parts)];
const pod = makePod("p", { requests: { cpu: "400m", memory: "1Gi" } });
/** A host of the plugin, once it has metrics. */
async function measuring(given: object, plugin = loadAware()) {
  const measured = changed(plugin);
  const host = await running(plugin, nodes, { arguments: given });
  await measured;
  return host;
}

const neutral = { idle: 50, half: 50, busy: 50 };

test("pods are packed up to the target by what metrics-server measured", async () => {
  const body = nodeMetrics(Date.now(), { idle: ["0", "0"], half: ["1200m", "0"], busy: ["3", "0"] });
  await using api = await answering(() => ({ body }));
  await using host = await measuring({ metricProvider: { address: api.address } });

  assert.deepEqual(await host.score(pod), { idle: 55, half: 100, busy: 10 });
});

test("risk is balanced by what Prometheus measured", async () => {
  await using prometheus = await answering(({ url }) => {
    const query = decodeURIComponent(url ?? "");
    if (query.includes("stddev")) return { body: vector(Date.now(), { busy: 0.4 }) };
    if (query.includes("memory")) return { body: vector(Date.now(), { idle: 0, half: 2 ** 32, busy: 0 }) };
    return { body: vector(Date.now(), { idle: 0, half: 0, busy: 2 }) };
  });
  const metricProvider = { type: "Prometheus", address: prometheus.address };
  await using host = await measuring({ strategy: "LoadVariationRiskBalancing", metricProvider });

  // idle: 10 % of CPU, 12.5 % of memory; half: 62.5 % of memory; busy: 60 % of CPU and 10 % of deviation.
  assert.deepEqual(await host.score(pod), { idle: 94, half: 69, busy: 65 });
});

test("without metrics every node scores the same, and nothing fails", async () => {
  await using api = await answering(() => ({ status: 503, body: "down" }));
  const given = { metricProvider: { address: api.address } };
  await using host = await running(loadAware(), nodes, { arguments: given });

  assert.deepEqual(await host.score(pod), neutral);
});

test("a pod that was bound a moment ago counts before any metrics show it", async () => {
  const body = nodeMetrics(Date.now(), { idle: ["0", "0"], half: ["0", "0"], busy: ["0", "0"] });
  await using api = await answering(() => ({ body }));
  await using host = await measuring({ metricProvider: { address: api.address } });
  const before = await host.score(pod);
  const status = { startTime: new Date().toISOString() };
  const bound = { ...makePod("bound", { requests: { cpu: "1200m" } }), status };
  host.cluster.putPod(bound, "half");

  assert.deepEqual(before, { idle: 55, half: 55, busy: 55 });
  assert.deepEqual(await host.score(pod), { idle: 55, half: 100, busy: 55 });
});

test("nodes that come, go and move keep their loads", async () => {
  const body = nodeMetrics(Date.now(), { idle: ["0", "0"], half: ["1200m", "0"], late: ["1200m", "0"] });
  await using api = await answering(() => ({ body }));
  await using host = await measuring({ metricProvider: { address: api.address } });
  await host.score(pod);
  host.cluster.putNode(makeNode("late", parts));
  host.cluster.removeNode("idle");

  assert.deepEqual(await host.score(pod), { late: 100, half: 100, busy: 50 });
});

test("a profile that is configured again as before keeps its metrics; one that leaves forgets them", async () => {
  let answers = 0;
  await using api = await answering(() => {
    answers += 1;
    return answers === 1
      ? { body: nodeMetrics(Date.now(), { idle: ["0", "0"] }) }
      : { status: 503, body: "" };
  });
  const plugin = loadAware();
  const given = { metricProvider: { address: api.address } };
  await using host = await measuring(given, plugin);
  await host.configure(given);
  const kept = await host.score(pod);
  await host.configure({ ...given, targetUtilization: 50 });
  const anew = await host.score(pod);

  assert.deepEqual([kept?.idle, anew?.idle], [55, 50]);
  plugin.profileRemoved?.(host.profile);
  assert.deepEqual(plugin.state?.(), { profiles: {} });
});

test("metrics and state say what the scores rest on", async () => {
  const body = nodeMetrics(Date.now(), { idle: ["0", "0"] });
  await using api = await answering(() => ({ body }));
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  const plugin = loadAware();
  const measured = changed(plugin);
  const address = `unix:${join(folder, "p.sock")}`;
  const server = new Server(plugin, address);
  await server.start();
  const pages = `http://127.0.0.1:${await server.serveMetrics("127.0.0.1:0")}`;
  const host = new Host(address);
  for (const node of nodes) host.cluster.putNode(node);
  await host.connect({ metricProvider: { address: api.address } });
  await measured;

  const text = await (await fetch(`${pages}/metrics`)).text();
  const state = (await (await fetch(`${pages}/state`)).json()) as {
    profiles: Record<string, Record<string, unknown>>;
  };
  await host.close();
  await server.stop(0);
  await rm(folder, { recursive: true });

  for (const line of [
    'load_aware_fetches_total{profile="default-scheduler",outcome="success"} 1',
    'load_aware_nodes{profile="default-scheduler",metrics="fresh"} 1',
    'load_aware_nodes{profile="default-scheduler",metrics="absent"} 2',
  ]) {
    assert(text.includes(`${line}\n`), text);
  }
  const { metrics, scores, nodes: counts } = state.profiles["default-scheduler"] ?? {};
  assert.deepEqual([metrics, scores, counts], ["FRESH", "by load", { fresh: 1, stale: 0, absent: 2 }]);
});
