import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Action,
  ArgumentError,
  Code,
  CycleOutcome,
  currentCall,
  definePlugin,
  Normalization,
  type PluginSpec,
  reject,
  SKIP,
} from "../src/index.ts";
import type { RequeueResponse } from "../src/generated/berth/plugin/v1/queueing.ts";
import { makeNode, makePod, Refused, running } from "../src/testing/index.ts";

const nodes = ["n0", "n1", "n2"].map((name) => makeNode(name));
const pod = makePod("p");
const made = (functions: Partial<PluginSpec>) => definePlugin({ name: "x", ...functions });

test("a node is turned down with the author's reason, and only candidates are asked about", async () => {
  const asked: string[] = [];
  const filter: PluginSpec["filter"] = (_, node) => {
    asked.push(node.metadata.name);
    return node.metadata.name === "n1" ? "node(s) full" : undefined;
  };
  await using host = await running(made({ filter }), nodes);
  host.once = true;

  const { rejected, passing } = await host.filter(pod, ["n1", "n2"]);

  assert.deepEqual([...rejected], [["n1", { code: Code.UNSCHEDULABLE, text: "node(s) full" }]]);
  assert.deepEqual(passing, ["n2"]);
  assert.deepEqual(asked, ["n1", "n2"]);
});

test("vector forms answer for all nodes at once, with a normalization of their own", async () => {
  const plugin = made({
    filterNodes: () => ({
      codes: Uint8Array.of(0, 1, 0),
      reasons: [reject("no", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)],
    }),
    scoreNodes: () => ({ points: [-7, 0, 70_000], normalization: Normalization.MIN_MAX }),
  });
  await using host = await running(plugin, nodes);

  const { passing, scores } = await host.filterScore(pod);

  assert.deepEqual(passing, ["n0", "n2"]);
  assert.deepEqual(scores, { n0: -7, n2: 70_000 });
});

test("a plugin knows in whose shadow it is, when it is configured and when it is asked", async () => {
  const known: boolean[] = [];
  const plugin = made({
    configure: (_, profile) => {
      known.push(plugin.inShadow(profile));
      if (known.length === 3) throw new ArgumentError("colour: not like this");
    },
    preFilter: () => void known.push(currentCall().shadow),
  });
  await using host = await running(plugin, nodes);
  host.once = true;

  await host.configure({}, { shadow: true });
  await host.configure({});
  await host.filter(pod);

  assert.deepEqual(known, [false, true, false, true]);
});

for (const [claim, functions, expected] of [
  [
    "a wrong length",
    { filterNodes: () => ({ codes: new Uint8Array(2), reasons: [] }) },
    /expected 3 codes, got 2/,
  ],
  [
    "a code without a reason",
    { filterNodes: () => ({ codes: Uint8Array.of(0, 2, 0), reasons: [] }) },
    /code 2 has no/,
  ],
  ["an exception", { filter: () => assert.fail("broken") }, /x: filter: AssertionError.*broken/],
  ["an answer that is none", { preFilter: () => ({}) as never }, /expected nothing, a text/],
] as [string, Partial<PluginSpec>, RegExp][]) {
  test(`${claim} fails the attempt with a text that says so`, async () => {
    await using host = await running(made(functions), nodes);

    const status = await host.filterStatus(pod);

    assert.equal(status.code, Code.ERROR);
    assert.match(status.reasons.join(), expected);
  });
}

for (const [claim, score, expected] of [
  ["out of range", 101, /0 to 100 is the range/],
  ["no integer", 0.5, /a score is an integer of 64 bits, not 0.5/],
  ["no number", NaN, /a score is an integer of 64 bits, not NaN/],
  ["infinite", -Infinity, /a score is an integer of 64 bits, not -Infinity/],
  ["larger than what is exact", 2 ** 53, /a score is an integer of 64 bits, not 9007199254740992/],
  ["larger than 64 bits", 1e300, /a score is an integer of 64 bits, not 1e\+300/],
] as const) {
  test(`a score that is ${claim} fails the attempt`, async () => {
    await using host = await running(made({ score: () => score }), nodes);

    await assert.rejects(
      host.score(pod),
      (error) => error instanceof Refused && expected.test(error.message),
    );
  });
}

for (const score of [2n ** 63n, -(2n ** 63n) - 1n]) {
  test(`a score of ${score} fails the attempt`, async () => {
    const scoreNodes = () => ({ points: nodes.map(() => score), normalization: Normalization.MIN_MAX });
    await using host = await running(made({ scoreNodes: scoreNodes as never }), nodes);

    await assert.rejects(
      host.score(pod),
      (error) => error instanceof Refused && /a score is an integer of 64 bits/.test(error.message),
    );
  });
}

test("no opinion on the pod is no score", async () => {
  await using host = await running(made({ scoreNodes: () => undefined }), nodes);

  assert.equal(await host.score(pod), undefined);
});

test("a pod that the filter skips passes everywhere and is scored", async () => {
  await using host = await running(
    made({ preFilter: () => SKIP, filter: () => "never", score: () => 1 }),
    nodes,
  );

  const { passing, scores } = await host.filterScore(pod);

  assert.deepEqual([passing.length, scores], [3, { n0: 1, n1: 1, n2: 1 }]);
});

test("the binding cycle's functions are asked and notified, under the attempt's key", async () => {
  const calls: unknown[] = [];
  const plugin = made({
    reserve: () => void calls.push(["reserve", currentCall().key.attempt]),
    unreserve: ({ attempt }, node) => void calls.push(["unreserve", attempt, node]),
    permit: async () => ({ waitSeconds: 1.5 }),
    preBind: () => ({ annotations: { a: "1", b: null } }),
    bind: (_, node, annotations) => (annotations.a === node.metadata.name ? undefined : SKIP),
    postBind: (_, node) => void calls.push(["postBind", node]),
    cycleDone: (_, outcome, node) => void calls.push(["cycleDone", outcome, node]),
  });
  await using host = await running(plugin, nodes);

  const reserved = await host.reserve(pod, "n0");
  await host.unreserve(pod, "n0");
  await host.reserve(pod, "n1");
  const { status, timeout } = await host.permit(pod, "n1");
  const patch = await host.preBind(pod, "n1");
  const bound = await host.bind(pod, "n1", { a: "n1" });
  const left = await host.bind(pod, "n1");
  await host.postBind(pod, "n1");
  await host.cycleDone(pod, CycleOutcome.BOUND, "n1");

  assert.equal(reserved.skipPreBind, false);
  assert.deepEqual([status?.code, timeout], [Code.WAIT, { seconds: 1, nanos: 5e8 }]);
  assert.deepEqual(patch, { annotations: { a: "1", b: null } });
  assert.deepEqual([bound.code, left.code], [Code.SUCCESS, Code.SKIP]);
  assert.deepEqual(calls, [
    ["reserve", 1],
    ["unreserve", 1, "n0"],
    ["reserve", 2],
    ["postBind", "n1"],
    ["cycleDone", CycleOutcome.BOUND, "n1"],
  ]);
});

test("a node that went away between choice and call fails the attempt", async () => {
  await using host = await running(made({ reserve: () => undefined }), nodes);

  await assert.rejects(host.reserve(pod, "gone"), /node gone is gone/);
});

test("a pod may be kept out of the queue", async () => {
  await using host = await running(
    made({ preEnqueue: async () => ({ code: Code.PENDING, reasons: ["soon"] }) }),
  );

  assert.deepEqual(await host.preEnqueue(pod), { code: Code.PENDING, reasons: ["soon"] });
});

test("post filter names a node and the pods that go", async () => {
  const plugin = made({
    postFilter: (_, seen, { codes }) => ({
      nodeName: seen.at(codes.indexOf(1)).metadata.name,
      victimUids: ["v"],
    }),
  });
  await using host = await running(plugin, nodes);

  const answer = await host.postFilter(pod, new Map([["n2", reject("full")]]));

  assert.deepEqual(
    [answer.status?.code, answer.nominatedNodeName, answer.victimUids],
    [Code.SUCCESS, "n2", ["v"]],
  );
});

test("overlays show pods gone and there, and all is put back", async () => {
  const plugin = made({
    wantsPods: true,
    nodeLocal: true,
    filterNodes: (_, seen) => ({
      codes: Uint8Array.from({ length: seen.length }, (_, i) => (seen.podsOn(`n${i}`).size ? 1 : 0)),
      reasons: [reject("taken")],
    }),
  });
  await using host = await running(plugin, nodes);
  const [there, other] = [makePod("there"), makePod("other")];
  host.cluster.putPod(there, "n0");

  const answers = await host.filterOverlays(
    pod,
    { node: "n0", without: [there] },
    { node: "n0" },
    { node: "n1", with: [other] },
    { node: "n0", without: [there], with: [other] },
  );

  assert.deepEqual(
    answers.map((each) => each?.text),
    [undefined, "taken", "taken", "taken"],
  );
  assert.deepEqual((await host.filter(pod)).passing, ["n1", "n2"]);
});

test("hints of unknown pods queue them; vector hints answer all pairs", async () => {
  const event = { resource: "Node", action: Action.ADD };
  await using host = await running(
    made({ queueingHints: (pods, events) => events.map(() => pods.map((_, i) => i)) }),
  );

  assert.deepEqual(await host.hints([pod, makePod("q"), makePod("r")], event, event), [
    [false, true, true],
    [false, true, true],
  ]);
});

test("pods have the keys that the plugin gives them, and 0 where it fails; it hears who left", async () => {
  const calls: unknown[] = [];
  await using host = await running(
    made({
      sortKey: ({ metadata }) => {
        if (metadata.name === "broken") throw new Error("no key");
        return metadata.name === "long" ? Array(9).fill(0) : [-5, metadata.name.length];
      },
      podsLeft: (uids) => void calls.push([...uids]),
      queueReset: (profile) => void calls.push(profile),
    }),
  );

  const keys = await host.sortKeys([pod, makePod("broken"), makePod("long")], { left: ["u"], anew: true });

  assert.deepEqual([[-5, pod.metadata.name.length], [], []], keys);
  assert.deepEqual([host.profile, ["u"]], calls);
});

test("a plugin gives pods other keys by itself, in messages that the scheduler reads", () => {
  const plugin = made({});
  const heard: RequeueResponse[] = [];
  plugin.requeue.listen((message) => heard.push(message));

  plugin.requeue.sortKeys(new Map(Array.from({ length: 5000 }, (_, i) => [`u${i}`, [i]])), "a test");

  const counts = heard.map(({ action }) => action?.$case === "sortKeys" && action.value.uids.length);
  assert.deepEqual([4096, 904], counts);
  assert.throws(() => plugin.requeue.sortKeys(new Map([["u", [0.5]]]), "a test"), /whole numbers/);
});

test("a name that is no DNS label, and two forms of one question, are refused at once", () => {
  assert.throws(() => definePlugin({ name: "Not Good" }), /no DNS label/);
  assert.throws(() => made({ score: () => 0, scoreNodes: () => [] }), /score and scoreNodes answer the same/);
});

test("a filter or score that answers with a promise fails the attempt, and its rejection ends nothing", async () => {
  const late = (async () => Promise.reject(new Error("too late"))) as unknown as () => undefined & number;
  await using host = await running(made({ filter: late }), nodes);
  await using other = await running(made({ score: late }), nodes);

  const status = await host.filterStatus(pod);

  assert.match(status.reasons.join(), /filter has to answer at once, not with a promise/);
  await assert.rejects(other.score(pod), /score has to answer at once, not with a promise/);
});
