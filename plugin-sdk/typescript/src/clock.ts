/**
 * The clock of a plugin: the machine's own, until a scheduler says the time; that scheduler's from then on.
 *
 *     own --Time--> told --Begin of a stream without Time--> own
 *
 * Timers keep what is left of them where the clock turns from one to the other.
 */

import { describe } from "./errors.ts";
import { log } from "./log.ts";

const MICROS = 1000;
const LONGEST_TIMEOUT = 2 ** 31 - 1;

/** A function that waits for its time. */
export interface Timer {
  /** Do not call the function; nothing happens where it was called, or cancelled, before. */
  cancel(): void;
}

interface Waiting {
  dueMicros: number;
  readonly run: () => void;
}

/** The machine's time as it was when the process began, and counted on from there. */
const machine = () => performance.timeOrigin + performance.now();

/**
 * What time it is, and timers by that time. The machine's time is read once, and counted on from there: the clock never
 * jumps, whatever is done to the machine's. It goes back only where another run of a scheduler says an earlier time,
 * which `stateReset` announces as a changed epoch.
 */
export class Clock {
  readonly #machine: () => number;
  /** The scheduler's time, undefined while the clock is the plugin's own. */
  #told: number | undefined;
  /** By their times, the first one first. */
  readonly #timers: Waiting[] = [];
  #served = false;
  #alarm: NodeJS.Timeout | undefined;

  /** `now` is the machine's time in milliseconds, one that never goes back. */
  constructor(now = machine) {
    this.#machine = now;
  }

  /** The time in milliseconds since the epoch, as `Date.now()` has it. */
  now(): number {
    return this.#micros() / MICROS;
  }

  /** Call the function once so many milliseconds have passed, between two calls of the scheduler. What it throws is logged. */
  after(milliseconds: number, run: () => void): Timer {
    const timer = { dueMicros: this.#micros() + Math.max(1, Math.round(milliseconds * MICROS)), run };
    const later = this.#timers.findIndex(({ dueMicros }) => dueMicros > timer.dueMicros);
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer);
    this.#arm();
    return {
      cancel: () => {
        const at = this.#timers.indexOf(timer);
        if (at >= 0) this.#timers.splice(at, 1);
      },
    };
  }

  /** @internal Have timers run by themselves, or no more. */
  serve(served: boolean): void {
    this.#served = served;
    this.#arm();
  }

  /**
   * @internal Stand at that time of the scheduler, after each timer that is due by then was called at its own; when the
   * next one is due.
   */
  reach(micros: number): number | undefined {
    if (this.#told === undefined || micros < this.#told) this.#turn(micros);
    for (let next = this.#timers[0]; next && next.dueMicros <= micros; next = this.#timers[0]) {
      this.#told = Math.max(next.dueMicros, this.#told ?? 0);
      this.#callNext();
    }
    this.#told = micros;
    return this.#timers[0]?.dueMicros;
  }

  /** @internal Go on by the machine's time. */
  own(): void {
    if (this.#told !== undefined) this.#turn(undefined);
  }

  #micros(): number {
    return this.#told ?? Math.round(this.#machine() * MICROS);
  }

  /** Count by another time; timers keep what is left of them. */
  #turn(told: number | undefined): void {
    const before = this.#micros();
    this.#told = told;
    const shift = this.#micros() - before;
    for (const timer of this.#timers) timer.dueMicros += shift;
    this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#alarm);
    const [next] = this.#timers;
    if (!next || !this.#served || this.#told !== undefined) return;
    // A timeout is of whole milliseconds: none rings before its time.
    const left = Math.ceil((next.dueMicros - this.#micros()) / MICROS);
    this.#alarm = setTimeout(() => this.#ring(), Math.min(Math.max(left, 1), LONGEST_TIMEOUT)).unref();
  }

  #ring(): void {
    const now = this.#micros();
    for (let next = this.#timers[0]; next && next.dueMicros <= now; next = this.#timers[0]) this.#callNext();
    this.#arm();
  }

  #callNext(): void {
    try {
      this.#timers.shift()?.run();
    } catch (error) {
      log.error("timer failed", { error: describe(error) });
    }
  }
}
