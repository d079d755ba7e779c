import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Apart } from "../src/apart.ts";
import { pack, unpack } from "../src/crossing.ts";
import type { Reading } from "../src/readings.ts";
import { answering, given, nodeMetrics, vector } from "./kit.ts";

const AT = Date.parse("2026-01-01T00:00:00Z");

/** A source in a thread of its own, and its end. */
class Thread extends Apart {
  readonly ending = new AbortController();

  read() {
    return this.fetch(this.ending.signal);
  }

  [Symbol.dispose]() {
    this.ending.abort();
  }
}

test("metrics come from either provider, and what is read of them is read in another thread", async () => {
  await using api = await answering(({ url }) =>
    url?.startsWith("/api/v1/query")
      ? { body: vector(AT, { n0: 1.5 }) }
      : { body: nodeMetrics(AT, { n0: ["1500m", "2Gi"] }) },
  );
  using server = new Thread(given({ metricProvider: { address: api.address } }));
  using prometheus = new Thread(given({ metricProvider: { type: "Prometheus", address: api.address } }));
  const parsed = mock.method(JSON, "parse");

  const found = [await server.read(), await prometheus.read()].map((readings) => readings.get("n0"));

  const cpu = { mean: 1500, deviation: 0 };
  assert.deepEqual(found, [
    { at: AT, cpu, memory: { mean: 2 ** 31, deviation: 0 } },
    { at: AT, cpu },
  ]);
  assert.equal(parsed.mock.callCount(), 0);
  parsed.mock.restore();
});

test("readings cross as they are", () => {
  const [cpu, memory] = [
    { mean: 1, deviation: 2 },
    { mean: 3, deviation: 0 },
  ];
  const readings = new Map<string, Reading>([
    ["both", { at: 1, cpu, memory }],
    ["cpu", { at: 2, cpu }],
    ["memory", { at: 3, memory }],
    ["neither", { at: 4 }],
  ]);

  assert.deepEqual(unpack(pack(readings)), readings);
});

test("what a fetch failed with is reported, and the next one begins in the same thread", async () => {
  let down = true;
  await using api = await answering(() =>
    down ? { status: 503, body: "down" } : { body: nodeMetrics(AT, { n0: ["1", "0"] }) },
  );
  using thread = new Thread(given({ metricProvider: { address: api.address } }));

  await assert.rejects(thread.read(), /answered 503: down/);
  down = false;
  assert.deepEqual([...(await thread.read()).keys()], ["n0"]);
});

test("a thread that breaks fails its fetch, and the next fetch begins another one", async () => {
  const settings = given();
  using thread = new Thread({ ...settings, metricProvider: undefined } as unknown as typeof settings);

  await assert.rejects(thread.read(), TypeError);
  await assert.rejects(thread.read(), TypeError);
});

test("a fetch that is not wanted any more ends with its thread, and none begins", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  await using api = await answering(() => {
    resolve();
    return new Promise(() => undefined);
  });
  const thread = new Thread(given({ metricProvider: { address: api.address } }));
  const fetching = assert.rejects(thread.read(), /ended/);
  await asked;
  thread.ending.abort();

  await fetching;
  await assert.rejects(thread.read(), { name: "AbortError" });
  api.server.closeAllConnections();
});
