/** What one plugin process knows: its mirror, its profiles, and the pods it was asked about. */

import { status } from "@grpc/grpc-js";
import { Candidates } from "./candidates.ts";
import { CallError, describe, invalid, SyncError, unmet } from "./errors.ts";
import type { Call as CallMessage, PodRef } from "./generated/berth/plugin/v1/common.ts";
import type { Candidates as CandidatesMessage } from "./generated/berth/plugin/v1/scheduling.ts";
import { NackReason } from "./generated/berth/plugin/v1/state.ts";
import { Meter } from "./metrics.ts";
import { Mirror } from "./mirror.ts";
import type { Nodes } from "./nodes.ts";
import { decodePod, type Node, type Pod } from "./objects.ts";
import type { PodKey } from "./outcomes.ts";
import type { Plugin } from "./plugin.ts";

const REMEMBERED_PODS = 10_000;

/** A request's head, which has to be there. */
export type Head = CallMessage & { pod: PodRef };

/** The state behind all services of one plugin. */
export class Session {
  readonly plugin: Plugin;
  readonly mirror: Mirror;
  readonly meter: Meter;
  readonly profiles = new Set<string>();
  /** The Sync stream that counts, the one opened last. */
  stream: unknown;
  /** The file name of the second socket, where one is served. */
  ttrpcSocket: string | undefined;
  readonly #pods = new Map<string, { attempt: number; pod: Pod }>();
  readonly #watchers = new Set<() => void>();

  constructor(plugin: Plugin) {
    this.plugin = plugin;
    this.mirror = new Mirror(plugin);
    this.meter = new Meter(plugin.name, plugin.version);
  }

  /** Whether calls can be answered: configured and synced. */
  get ready(): boolean {
    return this.profiles.size > 0 && this.mirror.generation > 0;
  }

  /** Have a function called whenever generation or profiles change; the returned function ends it. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Wake the calls that wait for a generation, and the watchers of `ready`. */
  announce(): void {
    const { generation, nodes, pods, objects } = this.mirror;
    this.meter.held(generation, nodes.length, pods.size, objects.size);
    for (const watcher of [...this.#watchers]) watcher();
  }

  /**
   * Hold the generation that the call is about, by its own deltas; a promise where the stream has to bring it.
   * @throws CallError if the profile or the epoch can't be served.
   */
  catchUp(call: CallMessage, deadline: number): Promise<void> | undefined {
    if (!this.profiles.has(call.profile)) {
      throw unmet("NOT_CONFIGURED", `profile "${call.profile}" was not configured`);
    }
    this.#checkEpoch(call);
    this.#follow(call);
    return call.generation > this.mirror.generation ? this.#arrival(call, deadline) : undefined;
  }

  /**
   * The pod, remembered from an earlier call of the attempt if it isn't sent.
   * @throws CallError if the host has to send it, or what it sent is no pod.
   */
  pod(ref: PodRef): Pod {
    if (ref.object) {
      const pod = decoded(ref, ref.object);
      this.#remember(ref, pod);
      return pod;
    }
    const known = this.#pods.get(ref.uid);
    if (!known || known.attempt !== ref.attempt) {
      throw unmet("POD_UNKNOWN", `pod ${ref.namespace}/${ref.name}: its object is needed`);
    }
    return known.pod;
  }

  /** The pod as last seen, whatever the attempt. */
  lastSeen(ref: PodRef): Pod | undefined {
    return this.#pods.get(ref.uid)?.pod;
  }

  /** The pod will not be asked about again. */
  forget(uid: string): void {
    this.#pods.delete(uid);
  }

  /** All nodes at the call's indices, with the mask of those asked about; throws as `candidates`. */
  nodes(call: CallMessage, message?: CandidatesMessage): Nodes {
    return this.candidates(call, message).nodes();
  }

  /**
   * The nodes that are asked about, at the call's indices.
   * @throws CallError if nodes have moved since, or the message is not about this many nodes.
   */
  candidates(call: CallMessage, message?: CandidatesMessage): Candidates {
    this.#checkEpoch(call);
    if (call.generation < this.mirror.layoutSince) {
      const text = `node indices of generation ${call.generation} ended at ${this.mirror.layoutSince}`;
      throw unmet("GENERATION_GONE", text);
    }
    try {
      return Candidates.of(this.mirror, message);
    } catch (error) {
      throw invalid(`candidates: ${describe(error)}`);
    }
  }

  /** A node by name, undefined if it is gone. */
  node(name: string): Node | undefined {
    const index = this.mirror.index.get(name);
    return index === undefined ? undefined : this.mirror.nodes[index];
  }

  #checkEpoch(call: CallMessage): void {
    const { epoch, generation } = this.mirror;
    if (!generation || call.epoch !== epoch)
      throw unmet("NOT_SYNCED", `epoch "${epoch}" is held, not "${call.epoch}"`);
  }

  #follow(call: CallMessage): void {
    const before = this.mirror.generation;
    try {
      for (const delta of call.deltas) this.mirror.follow(delta);
    } catch (error) {
      if (!(error instanceof SyncError)) throw error;
      if (error.reason !== NackReason.GAP) throw unmet("NOT_SYNCED", error.message);
    } finally {
      if (before !== this.mirror.generation) this.announce();
    }
  }

  #arrival(call: CallMessage, deadline: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = new CallError(status.DEADLINE_EXCEEDED, `generation ${call.generation} has not arrived`);
      const timer = setTimeout(
        () => done(() => reject(late)),
        Math.max(0, Math.min(deadline - Date.now(), 2 ** 31 - 1)),
      );
      const end = this.watch(() => {
        try {
          this.#checkEpoch(call);
          if (this.mirror.generation >= call.generation) done(resolve);
        } catch (error) {
          done(() => reject(error));
        }
      });
      const done = (then: () => void) => {
        clearTimeout(timer);
        end();
        then();
      };
    });
  }

  #remember(ref: PodRef, pod: Pod): void {
    this.#pods.delete(ref.uid);
    this.#pods.set(ref.uid, { attempt: ref.attempt, pod });
    if (this.#pods.size <= REMEMBERED_PODS) return;
    const [oldest] = this.#pods.keys();
    if (oldest !== undefined) this.#pods.delete(oldest);
  }
}

/** The attempt's identity. */
export function keyOf({ uid, attempt, namespace, name }: PodRef): PodKey {
  return { uid, attempt, namespace, name };
}

/**
 * A request's head.
 * @throws CallError if it has none.
 */
export function headOf(request: { call: CallMessage | undefined }): Head {
  const { call } = request;
  if (!call?.pod) throw invalid("the call names no pod");
  return call as Head;
}

function decoded(ref: PodRef, object: Uint8Array): Pod {
  try {
    return decodePod(object);
  } catch (error) {
    throw invalid(`pod ${ref.namespace}/${ref.name}: ${describe(error)}`);
  }
}
