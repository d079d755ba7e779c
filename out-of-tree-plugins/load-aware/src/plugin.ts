/**
 * Load-aware scores nodes by what they really use: it packs pods up to a target, or keeps the risk of overload low.
 *
 * It never fails a pod and never waits: metrics are fetched in a thread of their own, and where there are none to be
 * believed, a node's score is neutral.
 */

import {
  currentCall,
  definePlugin,
  type Metric,
  type Node,
  type PlacedPod,
  type Plugin,
} from "@berth/plugin-sdk";
import { isDeepStrictEqual } from "node:util";
import { Apart } from "./apart.ts";
import { Cluster } from "./cluster.ts";
import { POD_FIELDS } from "./estimating.ts";
import { Loads } from "./loads.ts";
import { metrics, state } from "./reporting.ts";
import { type Settings, settings } from "./settings.ts";

/** The plugin, with a clock for tests. */
export function loadAware(now: () => number = Date.now): Plugin {
  const cluster = new Cluster(now);
  const profiles = new Map<string, Loads>();
  const forget = (index?: number) => {
    for (const loads of profiles.values()) loads.forget(index);
  };
  const forgetNode = (name: string) => {
    const index = cluster.indexOf(name);
    if (index !== undefined) forget(index);
  };
  const release = (profile: string) => {
    profiles.get(profile)?.stop();
    profiles.delete(profile);
  };

  const plugin = definePlugin({
    name: "load-aware",
    version: "0.2.0",
    arguments: settings(),
    podFields: POD_FIELDS,
    wantsPods: true,
    // When a pod was bound is read of it once.
    podsWithoutStatus: true,
    // Metrics are not the scheduler's to know: when they change, `requeue` says so.
    nodeLocal: true,

    configure(given, profile) {
      const wanted = given as Settings;
      // A scheduler that lost its connection configures again; metrics need not be fetched anew for that.
      if (isDeepStrictEqual(profiles.get(profile)?.settings, wanted)) return;
      release(profile);
      const changed = () => plugin.requeue.allRejected("the nodes' metrics changed");
      const loads = new Loads(profile, wanted, new Apart(wanted), cluster, changed, now);
      profiles.set(profile, loads);
      loads.start();
    },
    profileRemoved: release,

    scoreNodes(pod, { candidates }) {
      const { profile, span } = currentCall();
      const loads = profiles.get(profile) as Loads;
      span.setAttribute("load_aware.metrics", loads.stage);
      return loads.scores(pod, candidates);
    },

    stateReset() {
      cluster.reset();
      forget();
    },
    nodeUpserted(index: number, node: Node) {
      cluster.putNode(index, node);
      forget(index);
    },
    nodeRemoved(index: number, last: number) {
      cluster.takeNode(index, last);
      forget(index);
      forget(last);
    },
    podUpserted(placed: PlacedPod) {
      cluster.putPod(placed);
      forgetNode(placed.nodeName);
    },
    podRemoved(placed: PlacedPod) {
      cluster.takePod(placed);
      forgetNode(placed.nodeName);
    },

    metrics: (): Metric[] => metrics(profiles, now()),
    state: () => state(profiles, now()),
  });
  return plugin;
}
