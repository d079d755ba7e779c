/** What authors fill in; whatever functions a plugin has become its capabilities. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Span } from "@opentelemetry/api";
import type { AnyArguments } from "./arguments.ts";
import { Clock } from "./clock.ts";
import { ArgumentError, ContractError } from "./errors.ts";
import type { Metric } from "./metrics.ts";
import type { Listener } from "./mirror.ts";
import type { Nodes } from "./nodes.ts";
import type { Node, Pod } from "./objects.ts";
import type {
  Action,
  Answer,
  ClusterEvent,
  CycleOutcome,
  Maybe,
  GroupPreemption,
  MetadataPatch,
  Nomination,
  Normalization,
  PlacementProgress,
  Placements,
  PodGroup,
  PodKey,
  Points,
  ProposedPlacement,
  Reason,
  Scores,
  SortKey,
  Verdicts,
  Wait,
} from "./outcomes.ts";
import { Requeue } from "./requeue.ts";

/** The call being answered. */
export interface Call {
  readonly profile: string;
  readonly key: PodKey;
  /** The plugin runs in the profile's shadow: its answer is compared and changes nothing. */
  readonly shadow: boolean;
  /** The span of the call; attributes set here are exported with it. */
  readonly span: Span;
}

/** Where `currentCall` finds the call. */
export const answering = new AsyncLocalStorage<Call>();

/**
 * The call being answered: its profile, the pod's attempt, and its span.
 * @throws Error if no call is being answered.
 */
export function currentCall(): Call {
  const call = answering.getStore();
  if (!call) throw new Error("no call is being answered");
  return call;
}

/** Cluster events that may let a pod fit which this plugin rejected; all given conditions must hold. */
export interface EventInterest {
  /** "Node", "Pod", or a watched kind as "podgroups.v1alpha1.group". */
  readonly resource: string;
  readonly actions: readonly Action[];
  readonly changedFields?: readonly string[];
  readonly labelSelector?: string;
  readonly podResources?: readonly string[];
  /** The object has to be in the waiting pod's namespace. */
  readonly sameNamespace?: boolean;
  /** Labels that object and waiting pod have to carry with equal values. */
  readonly equalLabels?: readonly string[];
  /** A label of the waiting pod whose value has to be the object's name. */
  readonly podLabelNamesObject?: string;
  /** Whether `queueingHint` is asked about such an event; by default, if the plugin has one. */
  readonly askHint?: boolean;
}

/** A kind of object beside nodes and pods to be mirrored, as `nodes.objects`. */
export interface WatchedResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly labelSelector?: string;
}

/**
 * A scheduler plugin, as its author writes it.
 *
 * One call is answered at a time unless a function awaits, so plain variables need no locks.
 */
export interface PluginSpec extends Listener {
  /** A DNS label: what profiles call the plugin. */
  readonly name: string;
  readonly version?: string;
  /** The arguments of profiles, checked and with their defaults; see `argumentsOf`. */
  readonly arguments?: AnyArguments;
  /** How the scheduler maps scores to 0 to 100; by default they are that already. */
  readonly normalization?: Normalization;
  readonly events?: readonly EventInterest[];
  /** JSON pointers of all pod fields the verdicts depend on; by default any. */
  readonly podFields?: readonly string[];
  /** Mirror only the pods that request one of these; by default all. */
  readonly podResources?: readonly string[];
  /** Mirror the pods on nodes, for `nodes.podsOn` and the pod hooks. */
  readonly wantsPods?: boolean;
  /** A mirrored pod's status may be an old one: pods that changed in nothing else are not brought again. */
  readonly podsWithoutStatus?: boolean;
  readonly wantsNominations?: boolean;
  readonly watches?: readonly WatchedResource[];
  /** A node's verdict and score depend on the pod, the node and the pods on it, on no other node's pods. */
  readonly nodeLocal?: boolean;
  readonly scoreNeedsFeasible?: boolean;
  /** The time is read from `clock`, and timers are set by it, and by nothing else: a simulation sets it. */
  readonly usesClock?: boolean;
  /** The time wanted for a call. */
  readonly wantedDeadlineSeconds?: number;
  /** The time wanted at single points, by function: `{preBind: 5}`. */
  readonly wantedDeadlinesSeconds?: Readonly<Record<string, number>>;

  /** Take over a profile's arguments, after `arguments` found nothing wrong; throw ArgumentError with what is. */
  configure?(settings: Record<string, unknown>, profile: string): void;
  /** Hear that a profile does not use the plugin any more. */
  profileRemoved?(profile: string): void;

  /** Whether the pod may enter the queue. */
  preEnqueue?(pod: Pod): Maybe<Answer>;
  /** A verdict on the pod before any node is looked at; SKIP: there is nothing to filter. */
  preFilter?(pod: Pod): Maybe<Answer>;
  /** Nothing if the node can take the pod, else why not. */
  filter?(pod: Pod, node: Node): undefined | null | string | Reason;
  /** All nodes at once. */
  filterNodes?(pod: Pod, nodes: Nodes): Verdicts;
  /** How good the node is for the pod, an integer. */
  score?(pod: Pod, node: Node): number;
  /** All nodes at once; undefined: no opinion on this pod. */
  scoreNodes?(pod: Pod, nodes: Nodes): Points | Scores | undefined;
  /** Make room somewhere, after no node was left. */
  postFilter?(pod: Pod, nodes: Nodes, verdicts: Verdicts): Maybe<Nomination | Answer>;

  /** Set aside what the pod will use, under `currentCall().key`; repeating it changes nothing. */
  reserve?(pod: Pod, node: Node): Maybe<MetadataPatch | Answer>;
  /** Give it back; unknown keys and old attempts are none of your business. */
  unreserve?(key: PodKey, nodeName: string): Maybe<void>;
  /** Let the pod go on, stop it, or make it wait. */
  permit?(pod: Pod, node: Node): Maybe<Wait | Answer>;
  /** Prepare the binding, or have annotations and labels written to the pod. */
  preBind?(pod: Pod, node: Node): Maybe<MetadataPatch | Answer>;
  /** Write the binding, with these annotations, in the scheduler's place; SKIP: this pod is not yours. */
  bind?(pod: Pod, node: Node, annotations: Readonly<Record<string, string>>): Maybe<Answer>;
  /** Hear that the pod was bound. */
  postBind?(key: PodKey, nodeName: string): Maybe<void>;
  /** Hear what became of an attempt. */
  cycleDone?(key: PodKey, outcome: CycleOutcome, nodeName: string | undefined): Maybe<void>;

  /** Whether the event may let the pod fit, which this plugin rejected. */
  queueingHint?(pod: Pod, event: ClusterEvent): Maybe<boolean>;
  /** All pairs at once: a row of answers for each event, one a pod. */
  queueingHints?(pods: readonly Pod[], events: readonly ClusterEvent[]): Maybe<ArrayLike<boolean | number>[]>;

  /**
   * Where the pod stands in the queue, the lowest key first: at most 8 whole numbers, compared in order. Asked once for
   * each version of the pod; `requeue.sortKeys` gives other keys later. A failure is logged, and the pod has the key 0.
   */
  sortKey?(pod: Pod): Maybe<SortKey>;
  /** Hear of pods that `sortKey` was asked about and that wait no more. */
  podsLeft?(uids: readonly string[]): Maybe<void>;
  /** Forget the profile's pods that `sortKey` was asked about: all that wait are asked about anew. */
  queueReset?(profile: string): Maybe<void>;

  /**
   * Which sets of nodes the group may go to as a whole; `pod` is the first of its pods. SKIP: no opinion. A text,
   * `reject(...)` or a `Status`: the group can go nowhere. Where `nodes.candidates` is 0 a set has no node.
   */
  generatePlacements?(group: PodGroup, pod: Pod, nodes: Nodes): Placements | Answer;
  /** How good the placements are in which the group fits, each by itself; undefined: no opinion. */
  scorePlacements?(
    group: PodGroup,
    pod: Pod,
    nodes: Nodes,
    proposed: readonly ProposedPlacement[],
  ): Points | Scores | undefined;

  /**
   * Whether the group may go as it stands; its other pods are tried all the same. A text or `reject(...)`: it may not,
   * however many of the remaining pods find a node; a `Status` with `Code.WAIT`: not yet. The answer counts for the
   * attempt, wherever the pods go.
   */
  placementFeasible?(group: PodGroup, pod: Pod, progress: PlacementProgress): Answer;
  /**
   * Evictions for a group that fits nowhere, the best first, at most 16: the scheduler has the first carried out by
   * which the group fits. None: room is on its way. A text, `reject(...)` or a `Status`: there is nothing to be done.
   * The verdicts are those on the first of its pods that found no node.
   */
  podGroupPostFilter?(
    group: PodGroup,
    pod: Pod,
    nodes: Nodes,
    verdicts: Verdicts,
  ): readonly GroupPreemption[] | Answer;

  /** What the plugin counts itself; `GET /metrics` shows it after what the SDK counts. */
  metrics?(): Iterable<Metric>;
  /** How things stand inside, for people; `GET /state` shows it as JSON. */
  state?(): object;
}

/** A plugin that can be served. */
export interface Plugin extends PluginSpec {
  readonly version: string;
  /** Tell the scheduler that state outside the cluster changed. */
  readonly requeue: Requeue;
  /** What time it is, and timers, as `usesClock` announces. */
  readonly clock: Clock;
  /**
   * Whether the plugin is shown that profile's attempts and has no say in them. There it must not act on the cluster
   * by itself. `configure` may ask; it is called again when this turns.
   */
  inShadow(profile: string): boolean;
}

/** The profiles in whose shadow each plugin runs. */
const shadows = new WeakMap<Plugin, Set<string>>();

/** Let `inShadow` say so of that profile from now on. */
export function putInShadow(plugin: Plugin, profile: string, on: boolean): void {
  const known = shadows.get(plugin) ?? new Set();
  shadows.set(plugin, known);
  known[on ? "add" : "delete"](profile);
}

/**
 * The plugin that its author's functions make.
 * @throws ContractError if the name is no DNS label, or both forms of one function are given.
 */
export function definePlugin(spec: PluginSpec): Plugin {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(spec.name)) {
    throw new ContractError(`name: ${JSON.stringify(spec.name)} is no DNS label`);
  }
  for (const [one, all] of [
    ["filter", "filterNodes"],
    ["score", "scoreNodes"],
    ["queueingHint", "queueingHints"],
  ] as const) {
    if (spec[one] && spec[all])
      throw new ContractError(`${spec.name}: ${one} and ${all} answer the same; give one`);
  }
  const plugin: Plugin = Object.assign(Object.create(Object.getPrototypeOf(spec)), spec, {
    version: spec.version ?? "0.0.0",
    requeue: new Requeue(),
    clock: new Clock(),
    inShadow: (profile: string) => shadows.get(plugin)?.has(profile) ?? false,
  });
  return plugin;
}

/**
 * Hand a profile's arguments to the plugin.
 * @throws ArgumentError with everything that is wrong.
 */
export function takeArguments(plugin: Plugin, given: Record<string, unknown>, profile: string): void {
  if (!plugin.arguments && !plugin.configure) {
    const unknown = Object.keys(given).map((key) => `${key}: unknown argument of profile ${profile}`);
    if (unknown.length) throw new ArgumentError(...unknown);
    return;
  }
  const settings = plugin.arguments?.read(given) ?? given;
  plugin.configure?.(settings as Record<string, unknown>, profile);
  plugin.arguments?.keep(profile, settings);
}
