/** Metrics fetched in the background, one fetch after the other; what fails is tried again and reported. */

import { log } from "@berth/plugin-sdk";
import { setTimeout as delay } from "node:timers/promises";
import type { Reading, Readings, Source } from "./readings.ts";
import { HORIZON_SECONDS } from "./settings.ts";

/** What fetches came to. */
export interface Outcomes {
  succeeded: number;
  failed: number;
  /** Of the last fetch, if it failed. */
  error: string | undefined;
  lastSuccess: number | undefined;
}

/** The newest metrics of every node that metrics were ever given for. */
export class Feed {
  readonly outcomes: Outcomes = { succeeded: 0, failed: 0, error: undefined, lastSuccess: undefined };
  readonly #source: Source;
  readonly #now: () => number;
  readonly #stopping = new AbortController();
  readonly #readings = new Map<string, Reading>();

  constructor(source: Source, now: () => number) {
    this.#source = source;
    this.#now = now;
  }

  get readings(): Readings {
    return this.#readings;
  }

  /** Fetch now and every so many seconds; `changed` hears of metrics that are not as before. */
  async run(intervalSeconds: number, changed: () => void): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (await this.fetch()) changed();
      await delay(intervalSeconds * 1e3, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Fetch no more. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Fetch once; whether anything is not as before. */
  async fetch(): Promise<boolean> {
    const { signal } = this.#stopping;
    try {
      const found = await this.#source.fetch(signal);
      if (signal.aborted) return false;
      this.#succeeded();
      return this.#take(found);
    } catch (error) {
      if (!signal.aborted) this.#failed(messageOf(error));
      return false;
    }
  }

  #succeeded(): void {
    const { outcomes } = this;
    outcomes.succeeded += 1;
    outcomes.lastSuccess = this.#now();
    if (outcomes.error !== undefined) log.info("metrics are fetched again");
    outcomes.error = undefined;
  }

  #failed(error: string): void {
    const { outcomes } = this;
    outcomes.failed += 1;
    // The same failure again and again is reported once.
    if (outcomes.error !== error) log.warn("metrics could not be fetched", { error });
    outcomes.error = error;
  }

  /** A node that is in no answer any more keeps its last metrics, until those are too old. */
  #take(found: Readings): boolean {
    let changed = false;
    for (const [name, reading] of found) {
      if (same(reading, this.#readings.get(name))) continue;
      this.#readings.set(name, reading);
      changed = true;
    }
    const oldest = this.#now() - HORIZON_SECONDS * 1e3;
    for (const [name, { at }] of this.#readings) {
      if (at < oldest) this.#readings.delete(name);
    }
    return changed;
  }
}

function same(one: Reading, other: Reading | undefined): boolean {
  return (
    one.at === other?.at &&
    one.cpu?.mean === other.cpu?.mean &&
    one.cpu?.deviation === other.cpu?.deviation &&
    one.memory?.mean === other.memory?.mean &&
    one.memory?.deviation === other.memory?.deviation
  );
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
