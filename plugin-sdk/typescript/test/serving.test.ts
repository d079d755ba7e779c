import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { InMemorySpanExporter } from "@opentelemetry/sdk-trace-base";
import {
  QueueingServiceService as Queueing,
  type RequeueResponse,
} from "../src/generated/berth/plugin/v1/queueing.ts";
import {
  type ConverseRequest,
  type ConverseResponse,
  SchedulingServiceService as Scheduling,
} from "../src/generated/berth/plugin/v1/scheduling.ts";
import { HealthService, READINESS } from "../src/health.ts";
import { currentCall, definePlugin, Server, Tracing } from "../src/index.ts";
import { FileSpanExporter } from "../src/tracefile.ts";
import { Host, makeNode, makePod, running } from "../src/testing/index.ts";

const nodes = [makeNode("n0"), makeNode("n1")];
const pod = makePod("p");
const PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("a conversation answers each call under its number, errors too", async () => {
  await using host = await running(
    definePlugin({ name: "x", filter: () => "no", reserve: async () => undefined }),
    nodes,
  );
  const { path, requestSerialize, responseDeserialize } = Scheduling.converse;
  const stream = host.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  const answers = new Map<number, ConverseResponse["answer"]>();
  const all = new Promise<void>((resolve) => {
    stream.on("data", ({ id, answer }: ConverseResponse) => {
      answers.set(id, answer);
      if (answers.size === 3) resolve();
    });
  });
  stream.on("error", () => undefined);
  const say = (id: number, call: ConverseRequest["call"]) =>
    stream.write({ id, call, traceparent: undefined, timeout: { seconds: 60, nanos: 0 }, also: [] });

  say(1, { $case: "reserve", value: { call: host.call(pod), nodeName: "n0" } });
  say(2, { $case: "filter", value: { call: host.call(pod), candidates: undefined } });
  say(3, { $case: "filter", value: { call: { ...host.call(pod), epoch: "other" }, candidates: undefined } });
  await all;

  assert.equal(answers.get(1)?.$case, "reserve");
  assert.equal(answers.get(2)?.$case, "filter");
  const refused = answers.get(3);
  assert(refused?.$case === "error");
  assert.deepEqual([refused.value.code, refused.value.reason], [9, "NOT_SYNCED"]);
  stream.cancel();
});

test("a call's span is a child of the scheduler's, with the author's attributes", async () => {
  const exporter = new InMemorySpanExporter();
  const tracing = new Tracing("x", "1", [exporter]);
  const filter = () => void currentCall().span.setAttribute("mine", 1);
  await using host = await running(definePlugin({ name: "x", filter }), nodes, { tracing });
  host.once = true;
  host.metadata.set("traceparent", PARENT);
  await host.filter(pod);
  host.metadata.set("traceparent", PARENT.replace(/01$/, "00"));
  await host.filter(pod);

  const spans: ReturnType<InMemorySpanExporter["getFinishedSpans"]> = [];
  exporter.shutdown = async () => void spans.push(...exporter.getFinishedSpans());
  await tracing.shutdown();

  assert.equal(spans.length, 1);
  assert.equal(spans[0]?.spanContext().traceId, PARENT.slice(3, 35));
  assert.equal(spans[0]?.parentSpanContext?.spanId, PARENT.slice(36, 52));
  const expected = {
    mine: 1,
    "berth.plugin": "x",
    "rpc.system.name": "grpc",
    "rpc.method": "berth.plugin.v1.SchedulingService/Filter",
    "rpc.response.status_code": "OK",
    "berth.nodes.passed": 2,
  };
  assert.deepEqual({ ...spans[0]?.attributes, ...expected }, spans[0]?.attributes);
});

test("spans are lines of a file, with whole nanoseconds", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  const tracing = new Tracing("x", "1", [new FileSpanExporter(join(folder, "spans"))]);
  tracing.open("x/Filter", { traceparent: PARENT }).end();
  await tracing.shutdown();

  const text = await readFile(join(folder, "spans"), "utf8");
  await rm(folder, { recursive: true });

  const { traceId, parentSpanId, kind } = JSON.parse(text);
  assert.deepEqual([traceId, parentSpanId, kind], [PARENT.slice(3, 35), PARENT.slice(36, 52), 2]);
  assert.match(text, /"startTimeUnixNano":\d{19},/);
});

test("readiness is distinguished from liveness", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  const address = `unix:${join(folder, "x.sock")}`;
  const server = new Server(definePlugin({ name: "x" }), address);
  await server.start();
  const host = new Host(address);
  const status = async (service: string) =>
    (await host.ask<{ status: number }>(HealthService.check, { service })).status;

  const before = [await status(""), await status(READINESS)];
  await host.connect();
  const after = await status(READINESS);
  const { mode } = await stat(join(folder, "x.sock"));
  await host.close();
  await server.stop();
  await rm(folder, { recursive: true });

  assert.deepEqual([before, after, mode & 0o777], [[1, 2], 1, 0o600]);
});

test(
  "both sockets stop at once: a call over gRPC does not keep the second open",
  { timeout: 60_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "berth-"));
    const address = `unix:${join(folder, "x.sock")}`;
    const begun = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const preEnqueue = () => {
      begun.resolve();
      return go.promise;
    };
    const server = new Server(definePlugin({ name: "x", preEnqueue }), address);
    await server.start();
    const host = new Host(address);
    await host.connect();
    const asking = host.preEnqueue(pod);
    await begun.promise;
    const stopping = server.stop(60);
    while (existsSync(join(folder, "x.sock.ttrpc"))) await setTimeout(1);
    go.resolve();
    await asking;
    await stopping;
    await host.close();
    await rm(folder, { recursive: true });
  },
);

test("a shared socket, and its new directory, are open to the group", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  process.env.BERTH_PLUGIN_SOCKET_SHARED = "true";
  const server = new Server(definePlugin({ name: "x" }), `unix:${join(folder, "new", "x.sock")}`);
  await server.start();
  delete process.env.BERTH_PLUGIN_SOCKET_SHARED;
  const modes = await Promise.all(
    ["new", "new/x.sock"].map(async (each) => (await stat(join(folder, each))).mode),
  );
  await server.stop();
  await rm(folder, { recursive: true });

  assert.deepEqual(
    modes.map((mode) => mode & 0o777),
    [0o750, 0o660],
  );
});

test("an address that is in use, or is no socket, or has no certificates is refused", async () => {
  await using host = await running(definePlugin({ name: "x" }));
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  await writeFile(join(folder, "file"), "");
  const start = (address: string) => new Server(definePlugin({ name: "x" }), address).start();

  await assert.rejects(start(host.client.getChannel().getTarget()), /in use/);
  await assert.rejects(start(`unix:${join(folder, "file")}`), /no socket/);
  await assert.rejects(start("127.0.0.1:0"), /only unix:\/path sockets are served without certificates/);
  await rm(folder, { recursive: true });
});

test("what the plugin says of its own accord reaches the host", async () => {
  const plugin = definePlugin({ name: "x" });
  await using host = await running(plugin);
  const { path, requestSerialize, responseDeserialize } = Queueing.requeue;
  const stream = host.client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {});
  stream.on("error", () => undefined);
  await once(stream, "metadata");

  plugin.requeue.pods(["u"], "because");
  const [message] = (await once(stream, "data")) as [RequeueResponse];

  assert.deepEqual(message, {
    action: { $case: "requeue", value: { uids: ["u"] } },
    cause: "because",
    number: 1,
  });
  stream.cancel();
});

test("pages tell of calls, verdicts and what is held, and what the author adds", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  const address = `unix:${join(folder, "x.sock")}`;
  let broken = false;
  const server = new Server(
    definePlugin({
      name: "x",
      filter: (_, node) => (node.metadata.name === "n0" ? "no" : undefined),
      metrics: () => [
        { name: "mine", kind: "gauge", help: "Mine.", values: [{ labels: { a: 'b"' }, value: 1.5 }] },
      ],
      state: () => {
        if (broken) throw new Error("broken");
        return { well: true };
      },
    }),
    address,
  );
  await server.start();
  const port = await server.serveMetrics("127.0.0.1:0");
  const host = new Host(address);
  for (const node of nodes) host.cluster.putNode(node);
  await host.connect();
  host.once = true;
  await host.filter(pod);

  const get = (page: string) => fetch(`http://127.0.0.1:${port}${page}`);
  const text = await (await get("/metrics")).text();
  const state = await (await get("/state")).json();
  broken = true;
  const failed = await get("/state");
  const complaint = await failed.text();
  const { status } = await get("/other");
  await host.close();
  await server.stop();
  await rm(folder, { recursive: true });

  for (const line of [
    'berth_plugin_answered_calls_total{method="Filter",code="OK"} 1',
    'berth_plugin_node_verdicts_total{verdict="rejected"} 1',
    'berth_plugin_state_objects{kind="nodes"} 2',
    'berth_plugin_call_duration_seconds_count{method="Filter"} 1',
    'mine{a="b\\""} 1.5',
  ]) {
    assert(text.includes(`${line}\n`), line);
  }
  assert.deepEqual(state, { well: true });
  assert.deepEqual([failed.status, complaint, status], [500, "Error: broken\n", 404]);
});
