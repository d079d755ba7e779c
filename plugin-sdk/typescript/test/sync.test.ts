import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { NackReason } from "../src/generated/berth/plugin/v1/state.ts";
import { SchedulingServiceService as Scheduling } from "../src/generated/berth/plugin/v1/scheduling.ts";
import { definePlugin, type PluginSpec, PodStage } from "../src/index.ts";
import { makeNode, makePod, running } from "../src/testing/index.ts";

const made = (functions: Partial<PluginSpec> = {}) =>
  definePlugin({ name: "x", filter: () => undefined, ...functions });
const nodes = ["n0", "n1", "n2"].map((name) => makeNode(name));
const pod = makePod("p");
const refusedWith =
  (reason: string) => (error: { code: number; metadata: { get(key: string): unknown[] } }) =>
    error.code === status.FAILED_PRECONDITION && error.metadata.get("berth-reason")[0] === reason;

test("nodes and pods are followed step by step, and the last node moves into a gap", async () => {
  const seen: unknown[] = [];
  const plugin = made({
    wantsPods: true,
    nodeRemoved: (index, last) => void seen.push([index, last]),
    podUpserted: ({ nodeName }) => void seen.push(nodeName),
    podRemoved: ({ nodeName }) => void seen.push(`-${nodeName}`),
    filter: (_, node) => (node.metadata.name === "n2" ? "last" : undefined),
  });
  await using host = await running(plugin, nodes);

  host.cluster.removeNode("n0");
  host.cluster.putPod(pod, "n1");
  host.cluster.putPod(pod, "n2");
  host.cluster.removePod(pod.metadata.uid);
  const { passing, rejected } = await host.filter(pod);

  assert.deepEqual([passing, [...rejected.keys()]], [["n1"], ["n2"]]);
  assert.deepEqual(seen, [[0, 2], "n1", "-n1", "n2", "-n2"]);
});

test("objects of watched kinds are mirrored, and the plugin hears of them", async () => {
  const key = { group: "example.com", version: "v1", resource: "racks", namespace: "", name: "r" };
  const heard: unknown[] = [];
  const plugin = made({
    watches: [{ group: "example.com", version: "v1", resource: "racks" }],
    objectUpserted: ({ name }, source) => void heard.push([name, JSON.parse(Buffer.from(source).toString())]),
    objectRemoved: ({ name }) => void heard.push(`-${name}`),
    filterNodes: (_, all) => {
      heard.push(all.object(key) !== undefined);
      return { codes: new Uint8Array(all.length), reasons: [] };
    },
    filter: undefined,
  });
  await using host = await running(plugin, nodes);
  host.once = true;

  host.cluster.putObject(key, { height: 42 });
  await host.filter(pod);
  host.cluster.removeObject(key);
  host.cluster.removeObject({ ...key, name: "unknown" });
  await host.filter(pod);

  assert.deepEqual(heard, [["r", { height: 42 }], true, "-r", false]);
});

test("a nominated pod is where it is nominated, until it is assumed", async () => {
  const seen: unknown[] = [];
  const plugin = definePlugin({
    name: "x",
    wantsNominations: true,
    filterNodes: (_, all) => {
      seen.push(
        nodes.map(({ metadata }) => [...all.podsOn(metadata.name).values()].map(({ stage }) => stage)),
      );
      return { codes: new Uint8Array(all.length), reasons: [] };
    },
  });
  await using host = await running(plugin, nodes);
  host.once = true;

  for (const [node, stage] of [
    ["n0", PodStage.NOMINATED],
    ["n1", PodStage.NOMINATED],
    ["n1", PodStage.ASSUMED],
  ] as const) {
    host.cluster.putPod(pod, node, stage, stage === PodStage.ASSUMED ? 1 : 0);
    await host.filter(pod);
  }

  assert.deepEqual(seen, [
    [[PodStage.NOMINATED], [], []],
    [[], [PodStage.NOMINATED], []],
    [[], [PodStage.ASSUMED], []],
  ]);
});

test("a reconnected host goes on from what is held", async () => {
  const resets: boolean[] = [];
  await using host = await running(
    made({ stateReset: ({ epochChanged }) => void resets.push(epochChanged) }),
    nodes,
  );

  const held = await host.open();
  const answer = await host.send({
    $case: "begin",
    value: { epoch: host.epoch, resumeGeneration: held.generation },
  });

  assert.deepEqual(held, { epoch: host.epoch, generation: 1 });
  assert.deepEqual(answer, { $case: "ack", value: { generation: 1 } });
  assert.deepEqual(resets, [true]);
});

for (const [claim, body, reason] of [
  [
    "a resumption that is not held",
    { $case: "begin", value: { epoch: "other", resumeGeneration: 1 } },
    "CANNOT_RESUME",
  ],
  ["a step after a gap", delta(7, 8, 3), "GAP"],
  ["a wrong number of nodes", delta(1, 2, 9), "MISMATCH"],
  ["a chunk out of order", { $case: "chunk", value: { changes: [] } }, "OUT_OF_ORDER"],
  ["an object that can't be read", delta(1, 2, 3, "{"), "BAD_OBJECT"],
] as const) {
  test(`${claim} is refused, and nothing is held until a full transfer`, async () => {
    await using host = await running(made(), nodes);

    const answer = await host.send(body as never);

    assert.equal(answer?.$case === "nack" && answer.value.reason, NackReason[reason]);
    await assert.rejects(host.filter(pod), refusedWith("NOT_SYNCED"));
    await host.sync();
    assert.equal((await host.filter(pod)).passing.length, 3);
  });
}

test("a call brings its own steps, and one that is ahead waits for the stream", async () => {
  await using host = await running(made(), nodes);
  host.cluster.putNode(makeNode("n3"));
  const step = host.cluster.step();

  const early = host.ask<{ generation: number }>(Scheduling.filter, {
    call: host.call(pod),
    candidates: undefined,
  });
  const brought = await host.ask<{ generation: number }>(Scheduling.filter, {
    call: { ...host.call(pod), deltas: [step] },
    candidates: undefined,
  });

  assert.equal(brought.generation, 2);
  assert.equal((await early).generation, 2);
});

test("what a call needs and the plugin lacks is named for the host", async () => {
  await using host = await running(made(), nodes);
  const call = host.call(pod);
  const ask = (head: object) =>
    host.ask(Scheduling.filter, { call: { ...call, ...head }, candidates: undefined });

  await assert.rejects(ask({ profile: "other" }), refusedWith("NOT_CONFIGURED"));
  await assert.rejects(ask({ epoch: "other" }), refusedWith("NOT_SYNCED"));
  await assert.rejects(ask({ pod: { ...call.pod, object: undefined } }), refusedWith("POD_UNKNOWN"));
  host.cluster.removeNode("n0");
  await host.update();
  await assert.rejects(ask({}), refusedWith("GENERATION_GONE"));
});

function delta(baseGeneration: number, generation: number, nodeCount: number, object?: string) {
  const value = { index: 0, name: "n0", object: Buffer.from(object ?? "") };
  const changes = object === undefined ? [] : [{ change: { $case: "nodeUpsert", value } }];
  return { $case: "delta", value: { baseGeneration, generation, changes, nodeCount } };
}
