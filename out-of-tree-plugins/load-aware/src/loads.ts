/**
 * The load of all nodes as one profile sees it: metrics, and estimates of what they don't show yet.
 *
 *     WAITING --first metrics--> FRESH --all too old--> STALE
 *                                  ^                      |
 *                                  +-----new metrics------+
 *
 * Answers change only when nodes or pods do, or in `refresh`, which says so: never by the mere passing of time
 * between two calls.
 */

import { log, type Pod } from "@berth/plugin-sdk";
import type { Cluster, Host } from "./cluster.ts";
import { Column } from "./column.ts";
import { type Amounts, estimate } from "./estimating.ts";
import { Feed } from "./feed.ts";
import type { Measured, Reading, Source } from "./readings.ts";
import { loadVariationRisk, NEUTRAL, riskOf, targetLoadPacking, variation } from "./scoring.ts";
import type { Settings } from "./settings.ts";

/** How many nodes have metrics that are believed, that are too old, or none. */
export interface Counts {
  fresh: number;
  stale: number;
  absent: number;
}

/** One profile's columns over the cluster's nodes. */
export class Loads {
  readonly settings: Settings;
  readonly feed: Feed;
  stage: "WAITING" | "FRESH" | "STALE" = "WAITING";
  readonly #profile: string;
  readonly #cluster: Cluster;
  readonly #now: () => number;
  readonly #changed: () => void;
  readonly #estimates = new WeakMap<Pod, Amounts>();
  readonly #cpu = new Column();
  readonly #memory = new Column();
  /** The rows to be made anew before they are read; undefined stands for all. */
  #stale: Set<number> | undefined;
  #asOf: number;
  #expiry: NodeJS.Timeout | undefined;

  constructor(
    profile: string,
    settings: Settings,
    source: Source,
    cluster: Cluster,
    changed: () => void,
    now: () => number,
  ) {
    this.#profile = profile;
    this.settings = settings;
    this.feed = new Feed(source, now);
    this.#cluster = cluster;
    this.#changed = changed;
    this.#now = now;
    this.#asOf = now();
  }

  /** Fetch from now on. */
  start(): void {
    void this.feed.run(this.settings.fetchIntervalSeconds, () => this.refresh());
  }

  /** Fetch no more. */
  stop(): void {
    this.feed.stop();
    clearTimeout(this.#expiry);
  }

  /** 0 to 100 for each node that is asked about. */
  scores(pod: Pod, asked: Uint8Array | undefined): Uint8Array {
    this.#settle();
    const coming = this.#estimated(pod);
    const score = this.settings.strategy === "TargetLoadPacking" ? this.#packing : this.#risk;
    const scores = new Uint8Array(this.#cluster.nodes.length);
    for (let i = 0; i < scores.length; i++) {
      if (!asked || asked[i]) scores[i] = score(i, coming);
    }
    return scores;
  }

  /** Take over what was fetched, and what has become too old meanwhile. */
  refresh(): void {
    this.#asOf = this.#now();
    this.#cluster.prune();
    this.forget();
    this.#settle();
    this.#tell();
    this.#wakeAtExpiry();
    this.#changed();
  }

  /** The node at that index is to be looked at anew; without one, all are. */
  forget(index?: number): void {
    if (index === undefined) this.#stale = undefined;
    else this.#stale?.add(index);
  }

  /** How many nodes have which metrics. */
  counts(): Counts {
    const counts: Counts = { fresh: 0, stale: 0, absent: 0 };
    for (const host of this.#cluster.nodes) counts[this.#kind(host)] += 1;
    return counts;
  }

  /** When the newest metrics were taken. */
  newest(): number | undefined {
    let newest: number | undefined;
    for (const { at } of this.feed.readings.values()) newest = Math.max(at, newest ?? at);
    return newest;
  }

  readonly #packing = (index: number, coming: Amounts): number => {
    const share = this.#cpu.share(index, coming.cpu);
    if (Number.isNaN(share)) return NEUTRAL;
    return targetLoadPacking(100 * share, this.settings.targetUtilization);
  };

  readonly #risk = (index: number, coming: Amounts): number => {
    const cpu = riskOf(this.#cpu.share(index, coming.cpu), this.#cpu.variation(index));
    const memory = riskOf(this.#memory.share(index, coming.memory), this.#memory.variation(index));
    if (Number.isNaN(cpu)) return Number.isNaN(memory) ? NEUTRAL : loadVariationRisk(memory);
    return loadVariationRisk(memory > cpu ? memory : cpu);
  };

  /** Make the rows anew that are not as they were. */
  #settle(): void {
    const { nodes } = this.#cluster;
    for (const index of this.#stale ?? nodes.keys()) {
      if (index < nodes.length) this.#make(index, nodes[index] as Host);
    }
    this.#stale = new Set();
  }

  #make(index: number, host: Host): void {
    const reading = this.#reading(host);
    const believed = reading && this.#believed(reading) ? reading : undefined;
    const unseen = believed ? this.#unseen(host.names[0], believed) : { cpu: 0, memory: 0 };
    this.#put(this.#cpu, index, host.cpu, believed?.cpu, unseen.cpu);
    this.#put(this.#memory, index, host.memory, believed?.memory, unseen.memory);
  }

  #put(
    column: Column,
    index: number,
    capacity: number,
    measured: Measured | undefined,
    unseen: number,
  ): void {
    if (!measured || capacity <= 0) return column.put(index, Number.NaN, Number.NaN, 0);
    const { safeVarianceMargin, safeVarianceSensitivity } = this.settings;
    const varies = variation(measured.deviation / capacity, safeVarianceMargin, safeVarianceSensitivity);
    column.put(index, capacity, measured.mean + unseen, varies);
  }

  /** What those pods will use that were bound too late for the metrics to show them. */
  #unseen(nodeName: string, { at }: Reading): Amounts {
    const shown = at - this.settings.reportingIntervalSeconds * 1e3;
    let [cpu, memory] = [0, 0];
    for (const { pod, boundAt } of this.#cluster.recent(nodeName).values()) {
      if (boundAt <= shown) continue;
      const amounts = this.#estimated(pod);
      cpu += amounts.cpu;
      memory += amounts.memory;
    }
    return { cpu, memory };
  }

  #estimated(pod: Pod): Amounts {
    const known = this.#estimates.get(pod);
    if (known) return known;
    const made = estimate(pod, this.settings);
    this.#estimates.set(pod, made);
    return made;
  }

  #reading({ names }: Host): Reading | undefined {
    for (const name of names) {
      const found = this.feed.readings.get(name);
      if (found) return found;
    }
    return undefined;
  }

  #believed({ at }: Reading): boolean {
    return at > this.#asOf - this.settings.maxAgeSeconds * 1e3;
  }

  #kind(host: Host): keyof Counts {
    const reading = this.#reading(host);
    if (!reading) return "absent";
    return this.#believed(reading) ? "fresh" : "stale";
  }

  #tell(): void {
    const believed = [...this.feed.readings.values()].some((reading) => this.#believed(reading));
    if (!believed && !this.feed.readings.size) return;
    const stage = believed ? "FRESH" : "STALE";
    if (stage === this.stage) return;
    this.stage = stage;
    const { error } = this.feed.outcomes;
    if (believed) log.info("metrics are fresh", { profile: this.#profile });
    else log.warn("metrics are stale, all nodes score the same", { profile: this.#profile, error });
  }

  /** Metrics become too old while nothing else happens; then, too, the scheduler has to hear of it. */
  #wakeAtExpiry(): void {
    clearTimeout(this.#expiry);
    let oldest = Number.POSITIVE_INFINITY;
    for (const reading of this.feed.readings.values()) {
      if (this.#believed(reading)) oldest = Math.min(oldest, reading.at);
    }
    if (oldest === Number.POSITIVE_INFINITY) return;
    const left = oldest + this.settings.maxAgeSeconds * 1e3 - this.#now();
    this.#expiry = setTimeout(() => this.refresh(), Math.max(left, 1)).unref();
  }
}
