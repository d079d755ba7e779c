/** Plugins with one usual mistake each, by the name in MISTAKE: what the conformance kit has to find. */

import { definePlugin, main, type PluginSpec } from "../src/index.ts";

let turn = 0;
let weight = 1;
const numbers = new Map<string, number>();

const mistakes: Record<string, Omit<PluginSpec, "name">> = {
  "too-short": { scoreNodes: (_pod, nodes) => new Array(nodes.length - 1).fill(0) },
  "asked-only": { scoreNodes: (_pod, nodes) => Array.from(nodes.asked(), () => 10) },
  negative: {
    wantsPods: true,
    scoreNodes: (_pod, nodes) => nodes.scores((_index, node) => -nodes.podsOn(node.metadata.name).size),
  },
  "keeps-state": { score: () => ++turn % 7 },
  "order-matters": {
    score(pod) {
      const number = numbers.get(pod.metadata.uid) ?? numbers.size;
      numbers.set(pod.metadata.uid, number);
      return Math.trunc(100 / (1 + number));
    },
  },
  unchecked: {
    configure(settings) {
      weight = (settings.weight as number | undefined) ?? 1;
    },
    score: () => weight,
  },
};

const name = process.env.MISTAKE ?? "";
await main(definePlugin({ name, ...mistakes[name] }));
