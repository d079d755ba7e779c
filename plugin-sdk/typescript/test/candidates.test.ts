import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { definePlugin, Normalization, type PluginSpec, reject, SKIP } from "../src/index.ts";
import { SchedulingServiceService as Scheduling } from "../src/generated/berth/plugin/v1/scheduling.ts";
import type { FilterScoreResponse } from "../src/generated/berth/plugin/v1/scheduling.ts";
import { makeNode, makePod, running } from "../src/testing/index.ts";

const nodes = Array.from({ length: 21 }, (_, i) => makeNode(`n${i}`));
const names = nodes.map(({ metadata }) => metadata.name);
const pod = makePod("p");
const reasons = [reject("wrong team"), reject("no team")];
const codeOf = (index: number) => [0, 1, 0, 2][index % 4] as number;
const indexOf = (node: { metadata: { name: string } }) => Number(node.metadata.name.slice(1));

const byNode: Partial<PluginSpec> = {
  filter: (_, node) => reasons[codeOf(indexOf(node)) - 1],
  score: (_, node) => indexOf(node) * 1000,
  normalization: Normalization.MIN_MAX,
};
const atOnce: Partial<PluginSpec> = {
  filterNodes: (_, seen) => ({ codes: Uint8Array.from(Array(seen.length).keys(), codeOf), reasons }),
  scoreNodes: (_, seen) =>
    Array.from(Array(seen.length).keys(), (i) => (seen.candidates?.[i] === 0 ? 0 : i * 1000)),
  normalization: Normalization.MIN_MAX,
};

/** Numbers below 1 by chance, the same ones in every run. */
function* chance(): Generator<number, never> {
  for (let state = 1; ;) {
    state = (state * 48_271) % 2_147_483_647;
    yield state / 2_147_483_647;
  }
}

for (const [claim, functions] of Object.entries({
  "node by node": byNode,
  "all at once": atOnce,
  skipped: { ...byNode, preFilter: () => SKIP },
  "filter only": { filter: byNode.filter },
  "score only": { score: byNode.score, normalization: Normalization.MIN_MAX },
  "with a normalization of its own": {
    scoreNodes: () => ({ points: BigInt64Array.from(names, (_, i) => BigInt(i)), normalization: 1 }),
  },
} as Record<string, Partial<PluginSpec>>)) {
  test(`a list is answered as the bitmap of the same nodes: ${claim}`, async () => {
    await using host = await running(definePlugin({ name: "x", ...functions }), nodes);
    const numbers = chance();
    for (let round = 0; round < 20; round++) {
      const share = numbers.next().value;
      const asked = names.filter(() => numbers.next().value < share);
      const answers = async (listed: boolean) => {
        host.listed = listed;
        return [
          await host.filter(pod, asked),
          await host.score(pod, asked),
          await host.filterScore(pod, asked),
        ];
      };

      assert.deepEqual(await answers(true), await answers(false));
    }
  });
}

test("only listed nodes are looked at, and vectors are as long as the list", async () => {
  const filtered: number[] = [];
  const scored: number[] = [];
  const plugin = definePlugin({
    name: "x",
    ...byNode,
    filter: (_, node) => (filtered.push(indexOf(node)), reasons[codeOf(indexOf(node)) - 1]),
    score: (_, node) => (scored.push(indexOf(node)), indexOf(node)),
  });
  await using host = await running(plugin, nodes);

  const { filter, score } = await host.ask<FilterScoreResponse>(Scheduling.filterScore, {
    call: host.call(pod),
    candidates: { bitmap: Buffer.alloc(0), indices: indices(2, 5, 20) },
  });

  assert.deepEqual(filtered, [2, 5, 20]);
  assert.deepEqual(scored, [2, 20]);
  assert.deepEqual(filter?.verdicts?.codes, { $case: "each", value: Buffer.of(0, 1, 0) });
  assert.deepEqual(score?.scores?.values, { $case: "uint8", value: Buffer.of(2, 0, 20) });
});

for (const [claim, listed] of [
  ["with half an index", Buffer.alloc(6)],
  ["that names a node twice", indices(0, 0)],
  ["that descends", indices(1, 0)],
  ["past the last node", indices(1, 21)],
] as const) {
  test(`a list ${claim} is the host's fault`, async () => {
    await using host = await running(definePlugin({ name: "x", ...byNode }), nodes);
    const candidates = { bitmap: Buffer.alloc(0), indices: listed };

    await assert.rejects(host.ask(Scheduling.filterScore, { call: host.call(pod), candidates }), {
      code: status.INVALID_ARGUMENT,
    });
  });
}

test("plugins that look for a node say that they read lists", async () => {
  const announced = async (functions: Partial<PluginSpec>) => {
    await using host = await running(definePlugin({ name: "x", ...functions }));
    return (await host.handshake()).capabilities?.listedCandidates;
  };

  assert.deepEqual(await Promise.all([byNode, atOnce, { sortKey: () => [] }].map(announced)), [
    true,
    true,
    false,
  ]);
});

function indices(...listed: number[]): Buffer {
  const packed = Buffer.alloc(4 * listed.length);
  for (const [i, index] of listed.entries()) packed.writeUInt32LE(index, 4 * i);
  return packed;
}

test("builders make vectors with an entry for each node", async () => {
  await using host = await running(
    definePlugin({
      name: "builds",
      filterNodes: (_pod, nodes) => nodes.verdicts((index) => (index === 1 ? "the second" : undefined)),
      scoreNodes: (_pod, nodes) => nodes.scores((index) => 10 * index),
    }),
    ["a", "b", "c"].map((name) => makeNode(name)),
  );

  const { passing, scores } = await host.filterScore(makePod("p"), ["b", "c"]);

  assert.deepEqual(["c"], passing);
  assert.deepEqual({ c: 20 }, scores);
});

test("a vector of the asked nodes alone ends a test", async () => {
  await using host = await running(
    definePlugin({ name: "appends", scoreNodes: (_pod, nodes) => [...nodes.asked()].map(() => 1) }),
    ["a", "b", "c"].map((name) => makeNode(name)),
  );

  await assert.rejects(host.score(makePod("p")), /expected 3 scores, got 1/);
});

test("an error ends a test with the plugin's text", async () => {
  const filter = () => {
    throw new Error("out of luck");
  };
  await using host = await running(definePlugin({ name: "fails", filter }), [makeNode("a")]);

  await assert.rejects(host.filter(makePod("p")), /out of luck/);
});
