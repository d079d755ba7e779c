/**
 * The plugin with which the conformance kit asks about the queue's order and about pod groups: a group goes to one
 * zone, best to small nodes, and pods of higher priority come first.
 */

import { allocatable, Code, definePlugin, main, Normalization } from "../src/index.ts";

await main(
  definePlugin({
    name: "zones",
    usesClock: true,
    normalization: Normalization.MAX_REVERSE,
    sortKey: (pod) => [-(pod.spec.priority ?? 0)],
    generatePlacements(_group, _pod, nodes) {
      const zones = new Map<string, Uint8Array>();
      for (const [index, node] of nodes.asked()) {
        const zone = node.metadata.labels["topology.kubernetes.io/zone"];
        if (zone === undefined) continue;
        const chosen = zones.get(zone) ?? new Uint8Array(nodes.length);
        chosen[index] = 1;
        zones.set(zone, chosen);
      }
      return zones.size ? zones : "no node has a zone";
    },
    placementFeasible({ pods }, _pod, { remaining, scheduled }) {
      if (scheduled >= pods.length) return undefined;
      const code = scheduled + remaining < pods.length ? Code.UNSCHEDULABLE : Code.WAIT;
      return { code, reasons: ["all pods of the group are needed"] };
    },
    podGroupPostFilter: (_group, _pod, nodes) =>
      [...nodes.asked()]
        .map(([, { metadata }]) => ({ victimUids: [...nodes.podsOn(metadata.name).keys()] }))
        .filter(({ victimUids }) => victimUids.length),
    wantsPods: true,
    scorePlacements: (_group, _pod, nodes, proposed) =>
      proposed.map(({ assignments }) =>
        assignments.reduce((sum, [, index]) => sum + allocatable(nodes.at(index), "cpu"), 0),
      ),
  }),
);
