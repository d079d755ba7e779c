/** The nodes, and the pods bound to them so lately that metrics may not show them: from the state stream. */

import { type Node, type PlacedPod, type Pod, PodStage } from "@berth/plugin-sdk";
import { capacity } from "./estimating.ts";
import { HORIZON_SECONDS } from "./settings.ts";

/** What matters of a node; a capacity that it does not tell is 0. */
export interface Host {
  /** Its name first, then its addresses: metrics go by one of them. */
  readonly names: readonly [string, ...string[]];
  readonly cpu: number;
  readonly memory: number;
}

/** A pod, and when it was bound, in milliseconds since 1970. */
export interface Recent {
  readonly pod: Pod;
  readonly boundAt: number;
}

const NONE: ReadonlyMap<string, Recent> = new Map();

/** Nodes by index, recently bound pods by node and UID. */
export class Cluster {
  readonly nodes: Host[] = [];
  readonly #index = new Map<string, number>();
  readonly #recent = new Map<string, Map<string, Recent>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The index of a node, undefined if it is not there. */
  indexOf(nodeName: string): number | undefined {
    return this.#index.get(nodeName);
  }

  /** The recently bound pods of a node. */
  recent(nodeName: string): ReadonlyMap<string, Recent> {
    return this.#recent.get(nodeName) ?? NONE;
  }

  /** Forget everything. */
  reset(): void {
    this.nodes.length = 0;
    this.#index.clear();
    this.#recent.clear();
  }

  /** A node is there, or changed. */
  putNode(index: number, node: Node): void {
    this.nodes[index] = host(node);
    this.#index.set(node.metadata.name, index);
  }

  /** A node went, and the last one took its index. */
  takeNode(index: number, last: number): void {
    this.#index.delete((this.nodes[index] as Host).names[0]);
    const moved = this.nodes.pop() as Host;
    if (index === last) return;
    this.nodes[index] = moved;
    this.#index.set(moved.names[0], index);
  }

  /** A pod counts on its node; how long it has been bound does not change as it is sent again. */
  putPod(placed: PlacedPod): void {
    const { pod, uid, nodeName } = placed;
    const there = this.#recent.get(nodeName) ?? new Map<string, Recent>();
    const boundAt = there.get(uid)?.boundAt ?? boundSince(placed, this.#now());
    if (boundAt < this.#now() - HORIZON_SECONDS * 1e3) return;
    this.#recent.set(nodeName, there.set(uid, { pod, boundAt }));
  }

  /** A pod counts no longer. */
  takePod({ uid, nodeName }: PlacedPod): void {
    const there = this.#recent.get(nodeName);
    there?.delete(uid);
    if (!there?.size) this.#recent.delete(nodeName);
  }

  /** Forget the pods that are recent no more. */
  prune(): void {
    const oldest = this.#now() - HORIZON_SECONDS * 1e3;
    for (const [nodeName, there] of this.#recent) {
      for (const [uid, { boundAt }] of there) {
        if (boundAt < oldest) there.delete(uid);
      }
      if (!there.size) this.#recent.delete(nodeName);
    }
  }
}

function host({ metadata, status }: Node): Host {
  const { cpu, memory } = status.capacity ?? status.allocatable ?? {};
  const addresses = (status.addresses ?? []).map(({ address }) => address);
  return {
    names: [metadata.name, ...addresses],
    cpu: capacity("cpu", cpu),
    memory: capacity("memory", memory),
  };
}

function boundSince({ pod, stage }: PlacedPod, now: number): number {
  if (stage === PodStage.ASSUMED) return now;
  const { conditions, startTime } = pod.status ?? {};
  const scheduled = conditions?.find(({ type, status }) => type === "PodScheduled" && status === "True");
  const written = scheduled?.lastTransitionTime ?? startTime ?? pod.metadata.creationTimestamp;
  const at = Date.parse(written ?? "");
  return Number.isNaN(at) ? now : at;
}
