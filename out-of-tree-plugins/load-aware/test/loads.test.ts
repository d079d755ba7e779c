import assert from "node:assert/strict";
import { test } from "node:test";
import { PodStage } from "@berth/plugin-sdk";
import { makeNode, makePod } from "@berth/plugin-sdk/testing";
import { Cluster } from "../src/cluster.ts";
import { Loads } from "../src/loads.ts";
import type { Reading } from "../src/readings.ts";
import { given } from "./kit.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const SECOND = 1e3;
// Four cores, so that a core is 25 %; by default 20 % score 70, 40 % score 100, 60 % score 27.
const parts = { allocatable: { cpu: "4", memory: "8Gi" } };
const nothing = makePod("nothing", { requests: { cpu: "0" } });

/** Two nodes, metrics as the test says, and a clock that it turns. */
class Scene {
  now = START;
  readings: Record<string, Reading> = {};
  broken = false;
  changes = 0;
  readonly cluster = new Cluster(() => this.now);
  readonly loads: Loads;

  constructor(settings: Record<string, unknown> = {}) {
    const source = {
      fetch: async () => {
        if (this.broken) throw new Error("down");
        return new Map(Object.entries(this.readings));
      },
    };
    const changed = () => {
      this.changes += 1;
    };
    this.loads = new Loads("default", given(settings), source, this.cluster, changed, () => this.now);
    this.cluster.putNode(0, makeNode("n0", parts));
    this.cluster.putNode(1, makeNode("n1", parts));
  }

  /** Metrics of now. */
  async measure(cores: Record<string, number>, at = this.now) {
    const entries = Object.entries(cores).map(
      ([name, used]) => [name, { at, cpu: { mean: used * 1e3, deviation: 0 } }] as const,
    );
    this.readings = Object.fromEntries(entries);
    return this.fetch();
  }

  async fetch() {
    const changed = await this.loads.feed.fetch();
    if (changed) this.loads.refresh();
    return changed;
  }

  bind(name: string, node: string, cpu: string, stage: PodStage = PodStage.ASSUMED) {
    const pod = makePod(name, { requests: { cpu } });
    this.cluster.putPod({ pod, uid: pod.metadata.uid, nodeName: node, stage, attempt: 1 });
    this.loads.forget(this.cluster.indexOf(node));
    return pod;
  }

  get scores() {
    return [...this.loads.scores(nothing, undefined)];
  }

  [Symbol.dispose]() {
    this.loads.stop();
  }
}

test("nodes score by their load, those without metrics in the middle", async () => {
  using scene = new Scene();
  await scene.measure({ n1: 0.8 });

  assert.deepEqual(scene.scores, [50, 70]);
});

test("the coming pod counts", async () => {
  using scene = new Scene();
  await scene.measure({ n0: 0, n1: 0.8 });

  // makePod's limits are its requests, so 0.8 of four cores are added.
  const scores = scene.loads.scores(makePod("p", { requests: { cpu: "800m" } }), undefined);

  assert.deepEqual([...scores], [70, 100]);
});

test("a pod that was bound lately is estimated until metrics cover it", async () => {
  using scene = new Scene({ reportingIntervalSeconds: 60 });
  await scene.measure({ n0: 0, n1: 0 });
  scene.bind("p", "n0", "1600m");
  const before = scene.scores;

  scene.now += 30 * SECOND;
  await scene.measure({ n0: 0.1, n1: 0 });
  const meanwhile = scene.scores;
  scene.now += 31 * SECOND;
  await scene.measure({ n0: 1.6, n1: 0 });

  assert.deepEqual(before, [100, 40]);
  assert.deepEqual(meanwhile, [38, 40]); // 0.1 measured and 1.6 estimated of four cores
  assert.deepEqual(scene.scores, [100, 40]);
});

test("a pod that goes is estimated no more", async () => {
  using scene = new Scene();
  await scene.measure({ n0: 0, n1: 0 });
  const pod = scene.bind("p", "n0", "1600m");
  const before = scene.scores;

  scene.cluster.takePod({ pod, uid: pod.metadata.uid, nodeName: "n0", stage: PodStage.PLACED, attempt: 0 });
  scene.loads.forget(0);

  assert.deepEqual(
    [before, scene.scores],
    [
      [100, 40],
      [40, 40],
    ],
  );
});

test("a pod that the API server has bound since counts from the moment it was bound", async () => {
  using scene = new Scene({ reportingIntervalSeconds: 60 });
  await scene.measure({ n0: 0, n1: 0 });
  const at = (seconds: number) => new Date(START - seconds * SECOND).toISOString();
  for (const [name, node, seconds] of [
    ["old", "n0", 60],
    ["new", "n1", 59],
  ] as const) {
    const conditions = [{ type: "PodScheduled", status: "True", lastTransitionTime: at(seconds) }];
    const pod = { ...makePod(name, { requests: { cpu: "1600m" } }), status: { conditions } };
    scene.cluster.putPod({ pod, uid: name, nodeName: node, stage: PodStage.PLACED, attempt: 0 });
  }
  scene.loads.forget();

  assert.deepEqual(scene.scores, [40, 100]);
});

test("what a pod's binding is confirmed by does not make it younger", async () => {
  using scene = new Scene({ reportingIntervalSeconds: 0 });
  scene.bind("p", "n0", "1600m");
  scene.now += SECOND;
  await scene.measure({ n0: 1.6, n1: 0 });
  scene.bind("p", "n0", "1600m", PodStage.PLACED);

  assert.deepEqual(scene.scores, [100, 40]);
});

test("metrics that are too old score neutral, node by node, and all alike in the end", async () => {
  using scene = new Scene({ maxAgeSeconds: 60 });
  await scene.measure({ n0: 0.8, n1: 0.8 });
  scene.now += 59 * SECOND;
  await scene.measure({ n1: 0.8 });
  scene.now += SECOND;
  scene.loads.refresh();
  const first = [scene.scores, scene.loads.stage];
  scene.broken = true;
  scene.now += 59 * SECOND;
  await scene.fetch();
  scene.loads.refresh();

  assert.deepEqual(first, [[50, 70], "FRESH"]);
  assert.deepEqual([scene.scores, scene.loads.stage], [[50, 50], "STALE"]);
  assert.equal(scene.loads.feed.outcomes.error, "down");
});

test("time alone changes no score: that metrics became too old is reported when it happens", async () => {
  using scene = new Scene({ maxAgeSeconds: 60 });
  scene.now += 60 * SECOND - 1;
  await scene.measure({ n0: 0.8, n1: 0.8 }, START);
  scene.now += SECOND;
  const before = [scene.scores, scene.changes];
  while (scene.changes < 2) await new Promise(setImmediate); // the timer that measure() set

  assert.deepEqual(before, [[70, 70], 1]);
  assert.deepEqual([scene.scores, scene.changes], [[50, 50], 2]);
});

test("the same metrics again are no change", async () => {
  using scene = new Scene();
  const first = await scene.measure({ n0: 1 });
  scene.now += SECOND;

  assert.deepEqual([first, await scene.measure({ n0: 1 }, START)], [true, false]);
});

test("a node that takes another's index keeps its own load", async () => {
  using scene = new Scene();
  await scene.measure({ n0: 1.6, n1: 0.8 });
  scene.cluster.takeNode(0, 1);
  scene.loads.forget(0);
  scene.loads.forget(1);

  assert.deepEqual(scene.scores, [70]);
});

test("metrics may name a node by its address", async () => {
  using scene = new Scene();
  const node = makeNode("n0", parts);
  node.status.addresses = [{ type: "InternalIP", address: "10.0.0.1" }];
  scene.cluster.putNode(0, node);
  await scene.measure({ "10.0.0.1": 1.6 });

  assert.deepEqual([scene.scores, scene.loads.counts()], [[100, 50], { fresh: 1, stale: 0, absent: 1 }]);
});

test("a quantity that is none counts as nothing, and stops nothing", async () => {
  using scene = new Scene();
  scene.cluster.putNode(1, makeNode("n1", { allocatable: { cpu: "many", memory: "8Gi" } }));
  scene.bind("p", "n0", "some");
  await scene.measure({ n0: 0.8, n1: 0.8 });

  assert.deepEqual(scene.scores, [70, 50]);
});
