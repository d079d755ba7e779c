/** The nodes that a call asks about, and the entries of the vectors that answer it. */

import { ContractError } from "./errors.ts";
import type { Candidates as CandidatesMessage } from "./generated/berth/plugin/v1/scheduling.ts";
import type { Mirror } from "./mirror.ts";
import { Nodes } from "./nodes.ts";
import type { Node } from "./objects.ts";
import { type Mask, unpackBits } from "./packing.ts";

const INDEX_BYTES = 4;

/** An entry for each node, or for each index of a list. */
export class Candidates {
  /** The number of entries. */
  readonly length: number;
  /** 1 at the entries that are asked about; undefined means all. */
  readonly asked: Mask | undefined;
  readonly #mirror: Mirror;
  /** The node of each entry; undefined: entry i is node i. */
  readonly #listed: Uint32Array | undefined;

  constructor(mirror: Mirror, asked?: Mask, listed?: Uint32Array) {
    this.#mirror = mirror;
    this.asked = asked;
    this.#listed = listed;
    this.length = listed?.length ?? mirror.nodes.length;
  }

  /**
   * Those of a message; without one, all nodes.
   * @throws RangeError if it is not about this many nodes.
   */
  static of(mirror: Mirror, message: CandidatesMessage | undefined): Candidates {
    const count = mirror.nodes.length;
    if (!message) return new Candidates(mirror);
    if (message.indices) return new Candidates(mirror, undefined, unpackIndices(message.indices, count));
    return new Candidates(mirror, unpackBits(message.bitmap, count));
  }

  /** Whether any node is asked about. */
  get some(): boolean {
    return this.asked ? this.asked.includes(1) : this.length > 0;
  }

  /** The same entries, of which these are asked about. */
  narrowed(asked: Mask): Candidates {
    return new Candidates(this.#mirror, asked, this.#listed);
  }

  /** Visit the nodes that are asked about; a generator would make two objects for each of them. */
  each(visit: (entry: number, node: Node) => void): void {
    const { nodes } = this.#mirror;
    for (let entry = 0; entry < this.length; entry++) {
      if (!this.asked || this.asked[entry]) visit(entry, nodes[this.#index(entry)] as Node);
    }
  }

  /** All nodes, as functions that answer for all at once see them. */
  nodes(): Nodes {
    if (!this.#listed) return new Nodes(this.#mirror, this.asked);
    const mask = new Uint8Array(this.#mirror.nodes.length);
    for (const [entry, index] of this.#listed.entries()) {
      if (!this.asked || this.asked[entry]) mask[index] = 1;
    }
    return new Nodes(this.#mirror, mask);
  }

  /**
   * The entries out of an author's vector, which has one for each node.
   * @throws ContractError if it has another length.
   */
  picked<Vector extends ArrayLike<unknown>>(vector: Vector, what: string): Vector {
    const count = this.#mirror.nodes.length;
    if (vector.length !== count) throw new ContractError(`expected ${count} ${what}, got ${vector.length}`);
    if (!this.#listed) return vector;
    const entry = (_: unknown, i: number) => vector[this.#index(i)];
    const entries = Array.from({ length: this.length }, entry);
    return (vector instanceof Uint8Array
      ? Uint8Array.from(entries as number[])
      : entries) as unknown as Vector;
  }

  #index(entry: number): number {
    return this.#listed ? (this.#listed[entry] as number) : entry;
  }
}

/**
 * The indices of a list.
 * @throws RangeError if they do not ascend, or are not below the count.
 */
function unpackIndices(bytes: Buffer, count: number): Uint32Array {
  if (bytes.length % INDEX_BYTES) {
    throw new RangeError(`${bytes.length} bytes of indices, which are ${INDEX_BYTES} each`);
  }
  const listed = new Uint32Array(bytes.length / INDEX_BYTES);
  let before = -1;
  for (let i = 0; i < listed.length; i++) {
    const index = bytes.readUInt32LE(i * INDEX_BYTES);
    if (index <= before) throw new RangeError(`index ${index} after ${before}: they are to ascend`);
    if (index >= count) throw new RangeError(`index ${index}: there are ${count} nodes`);
    listed[i] = before = index;
  }
  return listed;
}
