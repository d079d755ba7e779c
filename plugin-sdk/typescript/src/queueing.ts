/** QueueingService: hints for many events and pods at once. */

import { ask, tell } from "./asking.ts";
import { ContractError, describe, invalid, unmet } from "./errors.ts";
import type { PodRef } from "./generated/berth/plugin/v1/common.ts";
import type {
  ClusterEvent as EventMessage,
  QueueingHintsRequest,
  QueueingHintsResponse,
  SortKey as SortKeyMessage,
  SortKeysRequest,
  SortKeysResponse,
} from "./generated/berth/plugin/v1/queueing.ts";
import { log } from "./log.ts";
import type { Pod } from "./objects.ts";
import { Action, type ClusterEvent } from "./outcomes.ts";
import { packBits, packSortKey } from "./packing.ts";
import type { Plugin } from "./plugin.ts";
import type { Session } from "./session.ts";

type Row = ArrayLike<boolean | number>;

/**
 * Fill in the table; pods that aren't remembered are queued and named.
 * @throws ContractError if the plugin failed, which the host takes for: queue them.
 */
export async function queueingHints(
  session: Session,
  request: QueueingHintsRequest,
): Promise<QueueingHintsResponse> {
  const pods = request.pods.map((ref) => known(session, ref));
  const events = request.events.map(event);
  const present = pods.filter((pod) => pod !== undefined);
  const rows = present.length ? await hints(session.plugin, present, events) : events.map(() => []);
  const missing = pods.map((pod) => pod === undefined);
  return {
    hints: rows.map((row) => packed(spread(row, missing))),
    unknownPods: missing.includes(true) ? packBits(missing) : undefined,
    matrix: undefined,
  };
}

/**
 * Say where pods stand in the queue; one that the plugin fails for has the key 0.
 * @throws CallError if the profile was not configured.
 */
export async function sortKeys(session: Session, request: SortKeysRequest): Promise<SortKeysResponse> {
  const { plugin, profiles } = session;
  if (!profiles.has(request.profile)) {
    throw unmet("NOT_CONFIGURED", `profile "${request.profile}" was not configured`);
  }
  if (request.anew) await tell("queueReset", () => plugin.queueReset?.(request.profile));
  if (request.leftUids.length) await tell("podsLeft", () => plugin.podsLeft?.(request.leftUids));
  const keys: SortKeyMessage[] = [];
  for (const ref of request.pods) keys.push(await sortKey(session, ref));
  return { keys };
}

async function sortKey(session: Session, ref: PodRef): Promise<SortKeyMessage> {
  const pod = known(session, ref);
  try {
    return packSortKey((pod && (await ask("sortKey", () => session.plugin.sortKey?.(pod)))) ?? []);
  } catch (error) {
    log.warn("pod without a sort key", { pod: `${ref.namespace}/${ref.name}`, error: describe(error) });
    return { parts: [] };
  }
}

async function hints(plugin: Plugin, pods: readonly Pod[], events: readonly ClusterEvent[]): Promise<Row[]> {
  if (plugin.queueingHints) {
    const rows = await ask("queueingHints", () => plugin.queueingHints?.(pods, events));
    if (rows?.length !== events.length || rows.some((row) => row.length !== pods.length)) {
      throw new ContractError(`queueingHints: expected ${events.length} rows of ${pods.length} answers`);
    }
    return rows;
  }
  const rows: boolean[][] = [];
  for (const each of events) {
    const row: boolean[] = [];
    for (const pod of pods)
      row.push((await ask("queueingHint", () => plugin.queueingHint?.(pod, each))) ?? true);
    rows.push(row);
  }
  return rows;
}

function known(session: Session, ref: PodRef): Pod | undefined {
  try {
    return ref.object ? session.pod(ref) : session.lastSeen(ref);
  } catch {
    return undefined;
  }
}

function event({ resource, action, oldObject, newObject }: EventMessage): ClusterEvent {
  if (!action || !Object.values(Action).includes(action)) throw invalid(`there is no action ${action}`);
  return { resource, action, old: oldObject, new: newObject };
}

/** The answers for the pods at hand, among those that are not, which are queued. */
function spread(row: Row, missing: readonly boolean[]): boolean[] {
  let next = 0;
  return missing.map((gone) => gone || Boolean(row[next++]));
}

function packed(row: boolean[]): QueueingHintsResponse["hints"][number] {
  const first = row[0] ?? true;
  if (row.every((each) => each === first)) return { queue: { $case: "all", value: first } };
  return { queue: { $case: "pods", value: packBits(row) } };
}
