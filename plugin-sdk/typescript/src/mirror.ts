/**
 * The plugin's mirror of the cluster: what the scheduler's state stream said, up to one generation.
 *
 *     (nothing) --commit--> (epoch, generation) --delta--> (epoch, later generation)
 *         ^                        |
 *         +------- SyncError ------+        a mirror that can't follow holds nothing, never something wrong
 */

import { describe, SyncError } from "./errors.ts";
import {
  type Change,
  type Commit,
  type Delta,
  NackReason,
  type NodeRemove,
  type ObjectKey,
  type PodUpsert,
} from "./generated/berth/plugin/v1/state.ts";
import { decodeNode, decodePod, type Node } from "./objects.ts";
import { type PlacedPod, PodStage } from "./outcomes.ts";

/** Who keeps columns of its own; a Plugin is one. */
export interface Listener {
  /** Forget all nodes and pods; the present ones follow. A changed epoch voids every reservation. */
  stateReset?(change: { epochChanged: boolean }): void;
  /** A full transfer is complete. */
  stateSettled?(): void;
  /** A new node at index n, or a changed one at its index. */
  nodeUpserted?(index: number, node: Node): void;
  /** Drop the node at `index`; the node at `last` moves there (both may be the same). */
  nodeRemoved?(index: number, last: number): void;
  /** A pod counts on a node, or changed. */
  podUpserted?(placed: PlacedPod): void;
  /** A pod no longer counts. */
  podRemoved?(placed: PlacedPod): void;
  /** An object of one of `watches` came or changed, as JSON. */
  objectUpserted?(key: ObjectKey, source: Uint8Array): void;
  /** One went. */
  objectRemoved?(key: ObjectKey): void;
}

/** A change with its object decoded. */
export type Step =
  | { kind: "node"; index: number; name: string; node: Node }
  | { kind: "nodeGone"; remove: NodeRemove }
  | { kind: "pod"; placed: PlacedPod }
  | { kind: "podGone"; uid: string }
  | { kind: "object"; key: ObjectKey; source: Uint8Array | undefined };

/** Nodes by dense index, pods by UID, other objects by key. */
export class Mirror {
  epoch = "";
  generation = 0;
  /** The epoch last held, which a mirror that lost its way remembers. */
  lastEpoch = "";
  /** The first generation from which on every node has kept its index. */
  layoutSince = 0;
  readonly nodes: Node[] = [];
  readonly index = new Map<string, number>();
  readonly pods = new Map<string, PlacedPod>();
  readonly onNode = new Map<string, Map<string, PlacedPod>>();
  readonly objects = new Map<string, Uint8Array>();
  readonly #listener: Listener;
  readonly #names: string[] = [];

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  /**
   * Hold what a full transfer brought, and nothing else.
   * @throws SyncError if it doesn't fit together; nothing is held then.
   */
  replace(epoch: string, commit: Commit, steps: readonly Step[]): void {
    const epochChanged = epoch !== this.lastEpoch;
    this.lastEpoch = epoch;
    this.#clear();
    this.#listener.stateReset?.({ epochChanged });
    this.#apply(steps, commit.nodeCount);
    this.epoch = epoch;
    this.generation = this.layoutSince = commit.generation;
    this.#listener.stateSettled?.();
  }

  /**
   * Take one step, unless it is behind what is held.
   * @throws SyncError if a step is missing before it (what is held stays), or it doesn't fit.
   */
  follow(delta: Delta): void {
    if (delta.generation <= this.generation) return;
    if (delta.baseGeneration !== this.generation) {
      const text = `delta ${delta.baseGeneration} to ${delta.generation}, but ${this.generation} is held`;
      throw new SyncError(NackReason.GAP, text);
    }
    if (this.#apply(decode(delta.changes), delta.nodeCount)) this.layoutSince = delta.generation;
    this.generation = delta.generation;
  }

  /** Hold nothing, until the next full transfer. */
  drop(): void {
    this.#clear();
    this.epoch = "";
    this.generation = this.layoutSince = 0;
  }

  /** Count a pod no longer, for good or for the time of an overlay; return it if it was there. */
  takePod(uid: string): PlacedPod | undefined {
    const placed = this.pods.get(uid);
    if (!placed) return undefined;
    this.pods.delete(uid);
    const there = this.onNode.get(placed.nodeName);
    there?.delete(uid);
    if (!there?.size) this.onNode.delete(placed.nodeName);
    this.#listener.podRemoved?.(placed);
    return placed;
  }

  /** Count a pod on its node, for good or for the time of an overlay. */
  putPod(placed: PlacedPod): void {
    if (this.pods.get(placed.uid)?.nodeName !== placed.nodeName) this.takePod(placed.uid);
    this.pods.set(placed.uid, placed);
    const there = this.onNode.get(placed.nodeName) ?? new Map<string, PlacedPod>();
    this.onNode.set(placed.nodeName, there.set(placed.uid, placed));
    this.#listener.podUpserted?.(placed);
  }

  #clear(): void {
    this.generation = 0;
    this.nodes.length = this.#names.length = 0;
    for (const table of [this.index, this.pods, this.onNode, this.objects]) table.clear();
  }

  /** Apply and check; true if nodes came, went or moved. */
  #apply(steps: readonly Step[], nodeCount: number): boolean {
    const before = this.nodes.length;
    let moved = false;
    try {
      for (const step of steps) {
        this.#one(step);
        moved ||= step.kind === "nodeGone";
      }
      if (this.nodes.length !== nodeCount) {
        throw mismatch(`${this.nodes.length} nodes are held, the host has ${nodeCount}`);
      }
    } catch (error) {
      this.drop();
      throw error;
    }
    return moved || before !== this.nodes.length;
  }

  #one(step: Step): void {
    switch (step.kind) {
      case "node":
        return this.#putNode(step.index, step.name, step.node);
      case "nodeGone":
        return this.#takeNode(step.remove);
      case "pod":
        return this.putPod(step.placed);
      case "podGone":
        this.takePod(step.uid);
        return;
      case "object":
        return this.#putObject(step.key, step.source);
    }
  }

  #putObject(key: ObjectKey, source: Uint8Array | undefined): void {
    if (source) {
      this.objects.set(objectKey(key), source);
      this.#listener.objectUpserted?.(key, source);
    } else if (this.objects.delete(objectKey(key))) {
      this.#listener.objectRemoved?.(key);
    }
  }

  #putNode(index: number, name: string, node: Node): void {
    const known = this.index.get(name);
    if (known === undefined && index === this.nodes.length) {
      this.index.set(name, index);
      this.#names[index] = name;
    } else if (known !== index) {
      throw mismatch(`node "${name}" can't be at index ${index}`);
    }
    this.nodes[index] = node;
    this.#listener.nodeUpserted?.(index, node);
  }

  #takeNode({ index, name }: NodeRemove): void {
    if (this.index.get(name) !== index) throw mismatch(`node "${name}" is not at index ${index}`);
    const last = this.nodes.length - 1;
    const [node, moving] = [this.nodes.pop() as Node, this.#names.pop() as string];
    this.index.delete(name);
    if (index !== last) {
      this.nodes[index] = node;
      this.#names[index] = moving;
      this.index.set(moving, index);
    }
    this.#listener.nodeRemoved?.(index, last);
  }
}

/**
 * The changes with their objects decoded.
 * @throws SyncError if one can't be.
 */
export function decode(changes: readonly Change[]): Step[] {
  return changes.map(decoded);
}

/**
 * A pod as it counts on a node.
 * @throws Error if its object or its stage makes no sense.
 */
export function placedPod(upsert: PodUpsert, nodeName = upsert.nodeName): PlacedPod {
  const { uid, stage, attempt } = upsert;
  if (stage !== PodStage.ASSUMED && stage !== PodStage.PLACED && stage !== PodStage.NOMINATED) {
    throw new Error(`pod ${uid}: there is no stage ${stage}`);
  }
  return { pod: decodePod(upsert.object), uid, nodeName, stage, attempt };
}

/** What an object of a watched kind is called in `Nodes.object`. */
export function objectKey(key: ObjectKey): string {
  return [key.group, key.version, key.resource, key.namespace, key.name].join("/");
}

function decoded({ change }: Change): Step {
  try {
    switch (change?.$case) {
      case "nodeUpsert": {
        const { index, name, object } = change.value;
        return { kind: "node", index, name, node: decodeNode(object) };
      }
      case "nodeRemove":
        return { kind: "nodeGone", remove: change.value };
      case "podUpsert":
        return { kind: "pod", placed: placedPod(change.value) };
      case "podRemove":
        return { kind: "podGone", uid: change.value.uid };
      case "objectUpsert":
        return { kind: "object", key: keyed(change.value.key), source: change.value.object };
      case "objectRemove":
        return { kind: "object", key: keyed(change.value.key), source: undefined };
    }
  } catch (error) {
    throw new SyncError(NackReason.BAD_OBJECT, `${change?.$case}: ${describe(error)}`);
  }
  throw new SyncError(NackReason.BAD_OBJECT, "a change of an unknown kind");
}

function keyed(key: ObjectKey | undefined): ObjectKey {
  if (!key) throw new Error("an object without a key");
  return key;
}

function mismatch(text: string): SyncError {
  return new SyncError(NackReason.MISMATCH, text);
}
