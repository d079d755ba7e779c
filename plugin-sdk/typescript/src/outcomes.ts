/** What plugin functions return, and the few words of the protocol that authors meet. */

import { ContractError } from "./errors.ts";
import { Code } from "./generated/berth/plugin/v1/common.ts";
import { ActionType } from "./generated/berth/plugin/v1/identity.ts";
import { CycleOutcome, Normalization } from "./generated/berth/plugin/v1/scheduling.ts";
import { PodStage } from "./generated/berth/plugin/v1/state.ts";
import { decodeNode, decodePod, type Node, type Pod } from "./objects.ts";

export { ActionType as Action, Code, CycleOutcome, Normalization, PodStage };

/** Why a node is turned down; equal for all the nodes it applies to. */
export interface Reason {
  readonly text: string;
  readonly code: Code;
}

/** A verdict on the pod as a whole. */
export interface Status {
  readonly code: Code;
  readonly reasons: readonly string[];
}

/** Undefined lets the pod or node pass, a text or Reason turns it down, a Status says it in full. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing lets the pod pass
export type Answer = undefined | null | void | string | Reason | Status;

/** A result now or later. */
export type Maybe<Result> = Result | Promise<Result>;

/** Reason codes for all nodes with their table: 0 passes, k is reasons[k - 1]. */
export interface Verdicts {
  readonly codes: Uint8Array;
  readonly reasons: readonly Reason[];
}

/** One integer for each node. */
export type Points = Int32Array | Uint8Array | BigInt64Array | readonly number[];

/** Scores for all nodes with a normalization of this answer's own. */
export interface Scores {
  readonly points: Points;
  readonly normalization: Normalization;
}

/** At most 8 whole numbers, compared in order, the lowest first; missing ones count as 0. */
export type SortKey = readonly number[];

/** Permit's answer that keeps the pod waiting. */
export interface Wait {
  readonly waitSeconds: number;
}

/** PreBind's wish: what the scheduler writes to the pod before it binds; null removes a key. */
export interface MetadataPatch {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string | null>>;
}

/** PostFilter's answer: the node where room is made, and the pods that have to go first. */
export interface Nomination {
  /** Empty: take back what the pod was promised. */
  readonly nodeName: string;
  readonly victimUids?: readonly string[];
}

/** One attempt at one pod; what is held for a pod is held under (uid, attempt). */
export interface PodKey {
  readonly uid: string;
  readonly attempt: number;
  readonly namespace: string;
  readonly name: string;
}

/** A pod group, and its pods that have no node; those that have one are among the pods of `Nodes`. */
export interface PodGroup {
  readonly namespace: string;
  readonly name: string;
  readonly pods: readonly PodKey[];
}

/** Sets of nodes by name, in the order in which they are tried: of each node, by index, whether it is one of them. */
export type Placements = ReadonlyMap<string, ArrayLike<boolean | number>>;

/** How far an attempt at a group has come: its pods that are still to be tried, and those that have a node. */
export interface PlacementProgress {
  readonly remaining: number;
  readonly scheduled: number;
}

/** Pods, by UID, without which a pod group may fit. */
export interface GroupPreemption {
  readonly victimUids: readonly string[];
}

/** A placement in which a group fits, and the index of the node that each pod would go to. */
export interface ProposedPlacement {
  readonly name: string;
  /** 1 where the node is one of the placement's. */
  readonly nodes: Uint8Array;
  readonly assignments: readonly (readonly [PodKey, number])[];
}

/** Something that happened to an object; old and new are its JSON, undefined where there is none. */
export interface ClusterEvent {
  readonly resource: string;
  readonly action: ActionType;
  readonly old?: Uint8Array | undefined;
  readonly new?: Uint8Array | undefined;
}

/** A pod that counts on a node; `attempt` is the one that assumed it, 0 for other stages. */
export interface PlacedPod {
  readonly pod: Pod;
  readonly uid: string;
  readonly nodeName: string;
  readonly stage: PodStage;
  readonly attempt: number;
}

export const SUCCESS: Status = { code: Code.SUCCESS, reasons: [] };
export const SKIP: Status = { code: Code.SKIP, reasons: [] };

/**
 * A reason to turn nodes down; evicting pods may help, unless the code says otherwise.
 * @throws ContractError without a text, or with a code that turns nothing down.
 */
export function reject(text: string, code: Code = Code.UNSCHEDULABLE): Reason {
  if (!text || (code !== Code.UNSCHEDULABLE && code !== Code.UNSCHEDULABLE_AND_UNRESOLVABLE)) {
    throw new ContractError(
      `a reason needs a text and an unschedulable code, not ${JSON.stringify(text)}, ${code}`,
    );
  }
  return { text, code };
}

/** The nodes before and after an event of kind Node, undefined where there is none. */
export function nodesOf(event: ClusterEvent): { old: Node | undefined; new: Node | undefined } {
  return { old: event.old && decodeNode(event.old), new: event.new && decodeNode(event.new) };
}

/** The pods before and after an event of kind Pod, undefined where there is none. */
export function podsOf(event: ClusterEvent): { old: Pod | undefined; new: Pod | undefined } {
  return { old: event.old && decodePod(event.old), new: event.new && decodePod(event.new) };
}

/**
 * An answer in full.
 * @throws ContractError if it is none.
 */
export function statusOf(answer: unknown): Status {
  if (answer === undefined || answer === null) return SUCCESS;
  if (typeof answer === "string" && answer) return { code: Code.UNSCHEDULABLE, reasons: [answer] };
  if (typeof answer === "object" && "code" in answer) {
    if ("text" in answer) return { code: answer.code as Code, reasons: [String(answer.text)] };
    if ("reasons" in answer && Array.isArray(answer.reasons)) return answer as Status;
  }
  throw new ContractError(`expected nothing, a text, a Reason or a Status, got ${JSON.stringify(answer)}`);
}
