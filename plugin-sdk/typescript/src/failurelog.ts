/** Lines about functions of the author that fail: one that fails at every pod does not fill the disk. */

import { log } from "./log.ts";

const LINES_AT_ONCE = 20;
const LINES_A_SECOND = 0.5;

/** Writes a line for each failure unless there are too many; the next one says how many were left out. */
export class FailureLog {
  #left = LINES_AT_ONCE;
  #looked: number;
  #leftOut = 0;
  readonly #write: typeof log.error;
  readonly #now: () => number;

  constructor(write: typeof log.error = log.error, now: () => number = () => performance.now() / 1000) {
    this.#write = write;
    this.#now = now;
    this.#looked = now();
  }

  /** Write what failed, if there is room for it. */
  failed(fields: Record<string, unknown>): void {
    const now = this.#now();
    this.#left = Math.min(LINES_AT_ONCE, this.#left + (now - this.#looked) * LINES_A_SECOND);
    this.#looked = now;
    if (this.#left < 1) {
      this.#leftOut++;
      return;
    }
    this.#left--;
    this.#write("plugin function failed", this.#leftOut ? { ...fields, left_out: this.#leftOut } : fields);
    this.#leftOut = 0;
  }
}

export const failures = new FailureLog();
