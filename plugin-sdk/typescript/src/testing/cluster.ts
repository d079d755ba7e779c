/** The host's side of the state: nodes by index, pods by UID, and the changes since the last generation. */

import type {
  Change,
  Delta,
  NodeUpsert,
  ObjectKey,
  PodUpsert,
  SyncRequest,
} from "../generated/berth/plugin/v1/state.ts";
import type { Node, Pod } from "../objects.ts";
import { PodStage } from "../outcomes.ts";

const CHUNK = 256;

/** A small cluster that counts generations. */
export class Cluster {
  generation = 1;
  readonly names: string[] = [];
  readonly nodes = new Map<string, Node>();
  readonly pods = new Map<string, PodUpsert>();
  pending: Change[] = [];
  readonly #objects = new Map<string, Change>();

  /** Add or change a node. */
  putNode(node: Node): void {
    const { name } = node.metadata;
    if (!this.nodes.has(name)) this.names.push(name);
    this.nodes.set(name, node);
    this.pending.push(this.#node(this.names.indexOf(name)));
  }

  /** Take a node away; the last one moves to its index. */
  removeNode(name: string): void {
    const index = this.names.indexOf(name);
    const last = this.names.pop() as string;
    if (last !== name) this.names[index] = last;
    this.nodes.delete(name);
    this.pending.push({ change: { $case: "nodeRemove", value: { index, name } } });
  }

  /** Count a pod on a node. */
  putPod(pod: Pod, nodeName: string, stage: PodStage = PodStage.PLACED, attempt = 0): void {
    const { uid } = pod.metadata;
    const value = { uid, nodeName, stage, attempt, object: encode(pod) };
    this.pods.set(uid, value);
    this.pending.push({ change: { $case: "podUpsert", value } });
  }

  /** Count a pod no longer. */
  removePod(uid: string): void {
    this.pods.delete(uid);
    this.pending.push({ change: { $case: "podRemove", value: { uid } } });
  }

  /** Add or change an object of a watched kind. */
  putObject(key: ObjectKey, object: object): void {
    const change: Change = { change: { $case: "objectUpsert", value: { key, object: encode(object) } } };
    this.#objects.set(JSON.stringify(key), change);
    this.pending.push(change);
  }

  /** Take one away. */
  removeObject(key: ObjectKey): void {
    this.#objects.delete(JSON.stringify(key));
    this.pending.push({ change: { $case: "objectRemove", value: { key } } });
  }

  /** Everything since the last step, as a delta to a new generation. */
  step(): Delta {
    const changes = this.pending;
    this.pending = [];
    this.generation += 1;
    return {
      baseGeneration: this.generation - 1,
      generation: this.generation,
      changes,
      nodeCount: this.names.length,
    };
  }

  /** The full state. */
  *transfer(epoch: string): IterableIterator<SyncRequest> {
    this.pending = [];
    yield { body: { $case: "begin", value: { epoch, resumeGeneration: undefined } } };
    const changes: Change[] = this.names.map((_, index) => this.#node(index));
    for (const value of this.pods.values()) changes.push({ change: { $case: "podUpsert", value } });
    changes.push(...this.#objects.values());
    for (let start = 0; start < changes.length; start += CHUNK) {
      yield { body: { $case: "chunk", value: { changes: changes.slice(start, start + CHUNK) } } };
    }
    const commit = { generation: this.generation, nodeCount: this.names.length };
    yield { body: { $case: "commit", value: commit } };
  }

  #node(index: number): Change {
    const name = this.names[index] as string;
    const value: NodeUpsert = { index, name, object: encode(this.nodes.get(name)) };
    return { change: { $case: "nodeUpsert", value } };
  }
}

/** An object as the API server writes it. */
export function encode(object: unknown): Buffer {
  return Buffer.from(JSON.stringify(object));
}
