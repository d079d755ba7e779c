/** All nodes of the generation that a call is about. */

import type { ObjectKey } from "./generated/berth/plugin/v1/state.ts";
import { type Mirror, objectKey } from "./mirror.ts";
import type { Node } from "./objects.ts";
import type { Answer, PlacedPod, Verdicts } from "./outcomes.ts";
import { type Mask, ReasonTable } from "./packing.ts";

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

  /** Whether the answer for that node matters. */
  isAsked(index: number): boolean {
    return !this.candidates || this.candidates[index] === 1;
  }

  /**
   * The candidates with their indices: often fewer than `length`. A vector has an entry for each node all the
   * same: make it with `verdicts` or `scores`, or write the entry at the index.
   */
  *asked(): IterableIterator<[number, Node]> {
    for (const [index, node] of this.#mirror.nodes.entries()) {
      if (this.isAsked(index)) yield [index, node];
    }
  }

  /**
   * The answer of filterNodes: why each node that is asked about is turned down, nothing where it passes.
   * @throws ContractError if an answer is none of a filter.
   */
  verdicts(reject: (index: number, node: Node) => Answer): Verdicts {
    const codes = new Uint8Array(this.length);
    const table = new ReasonTable();
    for (const [index, node] of this.asked()) {
      const answer = reject(index, node);
      if (answer !== undefined && answer !== null) codes[index] = table.row(answer);
    }
    return { codes, reasons: table.reasons };
  }

  /** The answer of scoreNodes: the score of each node that is asked about. */
  scores(score: (index: number, node: Node) => number): number[] {
    const points = new Array<number>(this.length).fill(0);
    for (const [index, node] of this.asked()) points[index] = score(index, node);
    return points;
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
