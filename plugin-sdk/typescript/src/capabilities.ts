/** What a plugin does and needs, read off its functions. */

import {
  type Capabilities,
  type EventInterest as EventMessage,
  ExtensionPoint,
} from "./generated/berth/plugin/v1/identity.ts";
import type { Duration } from "./generated/google/protobuf/duration.ts";
import { ContractError } from "./errors.ts";
import type { EventInterest, Plugin, PluginSpec } from "./plugin.ts";

const FUNCTIONS: readonly (readonly [ExtensionPoint, readonly (keyof PluginSpec)[]])[] = [
  [ExtensionPoint.PRE_ENQUEUE, ["preEnqueue"]],
  [ExtensionPoint.FILTER, ["preFilter", "filter", "filterNodes"]],
  [ExtensionPoint.FILTER_OVERLAYS, ["filter", "filterNodes"]],
  [ExtensionPoint.POST_FILTER, ["postFilter"]],
  [ExtensionPoint.SCORE, ["score", "scoreNodes"]],
  [ExtensionPoint.RESERVE, ["reserve", "unreserve"]],
  [ExtensionPoint.PERMIT, ["permit"]],
  [ExtensionPoint.PRE_BIND, ["preBind"]],
  [ExtensionPoint.BIND, ["bind"]],
  [ExtensionPoint.POST_BIND, ["postBind"]],
  [ExtensionPoint.CYCLE_DONE, ["cycleDone"]],
  [ExtensionPoint.QUEUE_SORT, ["sortKey"]],
  [ExtensionPoint.PLACEMENT_GENERATE, ["generatePlacements"]],
  [ExtensionPoint.PLACEMENT_SCORE, ["scorePlacements"]],
  [ExtensionPoint.PLACEMENT_FEASIBLE, ["placementFeasible"]],
  [ExtensionPoint.POD_GROUP_POST_FILTER, ["podGroupPostFilter"]],
  [ExtensionPoint.QUEUEING_HINTS, ["queueingHint", "queueingHints"]],
];

/**
 * The announcement.
 * @throws ContractError if a deadline is wanted for something that is no extension point.
 */
export function capabilities(plugin: Plugin): Capabilities {
  const points = FUNCTIONS.filter(([, names]) => names.some((name) => plugin[name])).map(([point]) => point);
  const asks = points.includes(ExtensionPoint.QUEUEING_HINTS);
  return {
    extensionPoints: [...points, ExtensionPoint.REQUEUE],
    events: (plugin.events ?? []).map((each) => event(each, asks)),
    podFields: plugin.podFields && { paths: [...plugin.podFields] },
    state: {
      nodes: true,
      pods: plugin.wantsPods ?? false,
      nominations: plugin.wantsNominations ?? false,
      podResources: [...(plugin.podResources ?? [])],
      podsWithoutStatus: plugin.podsWithoutStatus ?? false,
      resources: (plugin.watches ?? []).map((each) => ({ labelSelector: undefined, ...each })),
    },
    nodeLocal: plugin.nodeLocal ?? false,
    scoreNeedsFeasible: plugin.scoreNeedsFeasible ?? false,
    argumentsSchema: plugin.arguments && Buffer.from(JSON.stringify(plugin.arguments.schema())),
    wantedDeadline:
      plugin.wantedDeadlineSeconds === undefined ? undefined : duration(plugin.wantedDeadlineSeconds),
    converse: true,
    converseTogether: true,
    clock: plugin.usesClock ?? false,
    listedCandidates: points.includes(ExtensionPoint.FILTER) || points.includes(ExtensionPoint.SCORE),
    wantedDeadlines: Object.entries(plugin.wantedDeadlinesSeconds ?? {}).map(([name, seconds]) => ({
      extensionPoint: pointOf(name),
      deadline: duration(seconds),
    })),
  };
}

/** Seconds as the message. */
export function duration(seconds: number): Duration {
  const whole = Math.floor(seconds);
  return { seconds: whole, nanos: Math.floor((seconds - whole) * 1e9) };
}

function pointOf(name: string): ExtensionPoint {
  const found = FUNCTIONS.find(([, names]) => (names as readonly string[]).includes(name));
  if (!found) throw new ContractError(`wantedDeadlinesSeconds: no extension point has a function ${name}`);
  return found[0];
}

function event(interest: EventInterest, asks: boolean): EventMessage {
  return {
    resource: interest.resource,
    actions: [...interest.actions],
    changedFields: [...(interest.changedFields ?? [])],
    labelSelector: interest.labelSelector,
    podResources: [...(interest.podResources ?? [])],
    askHint: interest.askHint ?? asks,
    sameNamespace: interest.sameNamespace ?? false,
    equalLabels: [...(interest.equalLabels ?? [])],
    podLabelNamesObject: interest.podLabelNamesObject,
  };
}
