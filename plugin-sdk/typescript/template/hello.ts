/**
 * Hello keeps pods on their own team's nodes, and off nodes without a team where it can: a template to copy.
 * Teams are named by a label of nodes and pods.
 */

import {
  Action,
  argumentsOf,
  type ClusterEvent,
  definePlugin,
  main,
  type Node,
  nodesOf,
  type Pod,
  reject,
} from "@berth/plugin-sdk";

const settings = argumentsOf(
  { label: "team" },
  { label: { description: "the label of nodes and pods that names a team" } },
);

const otherTeam = reject("node(s) belonged to another team");

/** Turn down the nodes of other teams. */
function filter(pod: Pod, node: Node) {
  const { label } = settings.of(pod);
  const team = node.metadata.labels[label];
  return team !== undefined && team !== pod.metadata.labels[label] ? otherTeam : undefined;
}

/** Prefer the team's own nodes to those without a team. */
function score(pod: Pod, node: Node) {
  return node.metadata.labels[settings.of(pod).label] === undefined ? 0 : 100;
}

/** Try a pod again when a node is not another team's any more. */
function queueingHint(pod: Pod, event: ClusterEvent) {
  const { new: node } = nodesOf(event);
  return node === undefined || filter(pod, node) === undefined;
}

export const plugin = definePlugin({
  name: "hello",
  version: "0.1.0",
  arguments: settings,
  filter,
  score,
  queueingHint,
  events: [{ resource: "Node", actions: [Action.ADD, Action.UPDATE_NODE_LABEL] }],
  podFields: ["/metadata/labels", "/spec/schedulerName"],
  nodeLocal: true,
});

if (import.meta.main) await main(plugin);
