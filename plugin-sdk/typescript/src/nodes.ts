/** All nodes of the generation that a call is about. */

import type { ObjectKey } from "./generated/berth/plugin/v1/state.ts";
import { type Mirror, objectKey } from "./mirror.ts";
import type { Node } from "./objects.ts";
import type { PlacedPod } from "./outcomes.ts";
import type { Mask } from "./packing.ts";

const NONE: ReadonlyMap<string, PlacedPod> = new Map();

/** Nodes by index, the pods on them, and the watched objects; valid while the call is answered. */
export class Nodes {
  /** 1 where the answer matters; undefined means everywhere. */
  readonly candidates: Mask | undefined;
  readonly #mirror: Mirror;

  constructor(mirror: Mirror, candidates?: Mask) {
    this.#mirror = mirror;
    this.candidates = candidates;
  }

  get length(): number {
    return this.#mirror.nodes.length;
  }

  /**
   * The node at an index.
   * @throws RangeError if there is none.
   */
  at(index: number): Node {
    const node = this.#mirror.nodes[index];
    if (!node) throw new RangeError(`node ${index} of ${this.length}`);
    return node;
  }

  /** The candidates with their indices. */
  *asked(): IterableIterator<[number, Node]> {
    for (const [index, node] of this.#mirror.nodes.entries()) {
      if (!this.candidates || this.candidates[index]) yield [index, node];
    }
  }

  /** The pods that count on a node, by UID. */
  podsOn(nodeName: string): ReadonlyMap<string, PlacedPod> {
    return this.#mirror.onNode.get(nodeName) ?? NONE;
  }

  /** A watched object as JSON. */
  object(key: ObjectKey): Uint8Array | undefined {
    return this.#mirror.objects.get(objectKey(key));
  }

  /** All watched objects as JSON, by group/version/plural/namespace/name. */
  get objects(): ReadonlyMap<string, Uint8Array> {
    return this.#mirror.objects;
  }
}
