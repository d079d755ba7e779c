/**
 * Write Berth scheduler plugins as plain TypeScript functions.
 *
 *     import { definePlugin, main } from "@berth/plugin-sdk";
 *
 *     const plugin = definePlugin({
 *       name: "team-nodes",
 *       filter(pod, node) {
 *         const team = node.metadata.labels.team;
 *         return team && team !== pod.metadata.labels.team ? "node(s) belong to another team" : undefined;
 *       },
 *     });
 *
 *     await main(plugin);
 *
 * @module
 */

export {
  type AnyArguments,
  type ArgumentRule,
  type ArgumentRules,
  Arguments,
  argumentsOf,
} from "./arguments.ts";
export { Clock, type Timer } from "./clock.ts";
export { AddressError, ArgumentError, ContractError, SdkError, TraceError } from "./errors.ts";
export type { ObjectKey } from "./generated/berth/plugin/v1/state.ts";
export { log } from "./log.ts";
export { main, type ServeOptions, serve } from "./main.ts";
export type { Metric } from "./metrics.ts";
export type { Listener } from "./mirror.ts";
export { Nodes } from "./nodes.ts";
export { type Document, decodeObject, type Node, type Pod } from "./objects.ts";
export * from "./outcomes.ts";
export type { Mask } from "./packing.ts";
export {
  type Call,
  currentCall,
  definePlugin,
  type EventInterest,
  type Plugin,
  type PluginSpec,
  type WatchedResource,
} from "./plugin.ts";
export type { Requeue } from "./requeue.ts";
export { allocatable, request, units } from "./resources.ts";
export { Server, type ServerOptions } from "./serving.ts";
export { Tracing } from "./tracing.ts";
