import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MetricsServer } from "../src/metrics_server.ts";
import { Prometheus } from "../src/prometheus.ts";
import { type Answer, answering, given, nodeMetrics, vector } from "./kit.ts";

interface Table {
  readonly vectors: readonly { claim: string; answer: unknown; expected?: object; refused?: string }[];
  readonly nodeMetrics: readonly { claim: string; items: unknown[]; expected: object }[];
}

const AT = Date.parse("2026-01-01T00:00:00Z");
const { signal } = new AbortController();
/** What answers are read as: descheduling reads them by the same table. */
const table = JSON.parse(
  readFileSync(new URL("../../../tests/load/readings.json", import.meta.url), "utf8"),
) as Table;
const risk = { strategy: "LoadVariationRiskBalancing" };

for (const { claim, items, expected } of table.nodeMetrics) {
  test(`NodeMetrics are read in thousandths of a core and bytes: ${claim}`, async () => {
    let path: string | undefined;
    await using api = await answering((request) => {
      path = request.url;
      return { body: { items } };
    });
    const source = new MetricsServer(given({ metricProvider: { address: `${api.address}/` } }));

    const found = await source.fetch(signal);

    assert.equal(path, "/apis/metrics.k8s.io/v1beta1/nodes");
    const read = [...found].map(([name, { at, cpu, memory }]) => [
      name,
      { at: at / 1e3, cpu: cpu?.mean, memory: memory?.mean },
    ]);
    assert.deepEqual(Object.fromEntries(read), expected);
  });
}

for (const { claim, answer, expected, refused } of table.vectors) {
  test(`Prometheus' answer to an instant query: ${claim}`, async () => {
    await using prometheus = await answering(() => ({ body: answer }));
    const provider = { type: "Prometheus", address: prometheus.address };
    const fetched = new Prometheus(given({ metricProvider: provider })).fetch(signal);

    if (refused) {
      await assert.rejects(fetched, (error: Error) => error.message.includes(refused));
      return;
    }
    const read = [...(await fetched)].map(([name, { at, cpu }]) => [
      name,
      { at: at / 1e3, value: (cpu?.mean ?? Number.NaN) / 1e3 },
    ]);
    assert.deepEqual(Object.fromEntries(read), expected);
  });
}

test("where risk is balanced, mean and deviation are those of the window, each sample counted once", async () => {
  let seconds = 0;
  let cpu = "1";
  await using api = await answering(() => ({ body: nodeMetrics(AT + seconds * 1e3, { n0: [cpu, "0"] }) }));
  const source = new MetricsServer(
    given({ ...risk, windowSeconds: 60, metricProvider: { address: api.address } }),
  );

  const means = [];
  for (const [at, used] of [
    [0, "1"],
    [30, "3"],
    [30, "3"],
    [89, "5"],
  ] as const) {
    [seconds, cpu] = [at, used];
    means.push((await source.fetch(signal)).get("n0")?.cpu);
  }

  assert.deepEqual(means, [
    { mean: 1000, deviation: 0 },
    { mean: 2000, deviation: 1000 },
    { mean: 2000, deviation: 1000 },
    { mean: 4000, deviation: 1000 },
  ]);
});

test("the token is read anew for each fetch", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  const tokenFile = join(folder, "token");
  const tokens: (string | undefined)[] = [];
  await using api = await answering((request) => {
    tokens.push(request.headers.authorization);
    return { body: nodeMetrics(AT, {}) };
  });
  const source = new MetricsServer(given({ metricProvider: { address: api.address, tokenFile } }));

  for (const token of ["old", "new\n"]) {
    await writeFile(tokenFile, token);
    await source.fetch(signal);
  }

  await rm(folder, { recursive: true });
  assert.deepEqual(tokens, ["Bearer old", "Bearer new"]);
});

test("Prometheus is asked for CPU alone where that is all that counts", async () => {
  const queries: (string | null)[] = [];
  await using prometheus = await answering(({ url }) => {
    queries.push(new URL(url ?? "", "http://any").searchParams.get("query"));
    return { body: vector(AT, { n2: 3 }) };
  });
  const provider = { type: "Prometheus", address: prometheus.address };

  await new Prometheus(given({ metricProvider: provider, prometheus: { cpuQuery: "cpu" } })).fetch(signal);

  assert.deepEqual(queries, ["cpu"]);
});

test("where risk is balanced, Prometheus works out mean and deviation over the window", async () => {
  const answers: Record<string, object> = {
    "avg_over_time((cpu)[900s:]) and (cpu)": { n0: 2, n1: 1 },
    "stddev_over_time((cpu)[900s:]) and (cpu)": { n0: 0.5 },
    "avg_over_time((memory)[900s:]) and (memory)": { n0: 8, n2: 9 },
    "stddev_over_time((memory)[900s:]) and (memory)": { n0: 1 },
  };
  await using prometheus = await answering(({ url }) => {
    const query = new URL(url ?? "", "http://any").searchParams.get("query") ?? "";
    return { body: vector(AT, answers[query] as Record<string, number>) };
  });
  const source = new Prometheus(
    given({
      ...risk,
      metricProvider: { type: "Prometheus", address: prometheus.address },
      prometheus: { cpuQuery: "cpu", memoryQuery: "memory" },
    }),
  );

  const found = await source.fetch(signal);

  assert.deepEqual(Object.fromEntries(found), {
    n0: { at: AT, cpu: { mean: 2000, deviation: 500 }, memory: { mean: 8, deviation: 1 } },
    n1: { at: AT, cpu: { mean: 1000, deviation: 0 } },
    n2: { at: AT, memory: { mean: 9, deviation: 0 } },
  });
});

for (const [claim, answer, expected] of [
  ["an error", { status: 503, body: "starting" }, /answered 503: starting/],
  ["no JSON", { body: "<html>" }, /answered no JSON: <html>/],
] as [string, Answer, RegExp][]) {
  test(`a Prometheus that answers with ${claim} fails the fetch, and the text says so`, async () => {
    await using prometheus = await answering(() => answer);
    const source = new Prometheus(
      given({ metricProvider: { type: "Prometheus", address: prometheus.address } }),
    );

    await assert.rejects(source.fetch(signal), expected);
  });
}

test("something else than NodeMetrics is refused", async () => {
  await using api = await answering(() => ({ body: { kind: "Status" } }));

  const source = new MetricsServer(given({ metricProvider: { address: api.address } }));

  await assert.rejects(source.fetch(signal), /expected a list of NodeMetrics/);
});

test("outside of a cluster the API server's address has to be given", async () => {
  await assert.rejects(new MetricsServer(given()).fetch(signal), /metricProvider.address: not in a cluster/);
});
