/** Telling the scheduler, unasked, that pods are worth another attempt or may stop waiting. */

import type { RequeueResponse } from "./generated/berth/plugin/v1/queueing.ts";
import type { SortKey } from "./outcomes.ts";
import { packSortKey } from "./packing.ts";

const KEYS_A_MESSAGE = 4096;

/** The plugin's side of the Requeue stream. What is said while no scheduler listens is lost. */
export class Requeue {
  readonly #listeners = new Set<(message: RequeueResponse) => void>();
  /** @internal The number of what was said last, 0 if nothing was. */
  lastNumber = 0;

  /** Try these pods again. */
  pods(uids: Iterable<string>, cause: string): void {
    this.#say({ action: { $case: "requeue", value: { uids: [...uids] } }, cause });
  }

  /** Try all pods again that this plugin rejected. */
  allRejected(cause: string): void {
    this.#say({ action: { $case: "requeueAll", value: {} }, cause });
  }

  /** Let pods go on that wait at Permit. */
  allow(uids: Iterable<string>, cause: string): void {
    this.#say({ action: { $case: "allowWaiting", value: { uids: [...uids] } }, cause });
  }

  /** Stop pods that wait at Permit. */
  reject(uids: Iterable<string>, cause: string): void {
    this.#say({ action: { $case: "rejectWaiting", value: { uids: [...uids] } }, cause });
  }

  /**
   * Sort these pods, by UID, by these keys from now on.
   * @throws ContractError if one of them is no key.
   */
  sortKeys(keys: ReadonlyMap<string, SortKey>, cause: string): void {
    const pairs = [...keys].map(([uid, key]) => [uid, packSortKey(key)] as const);
    for (let start = 0; start < pairs.length; start += KEYS_A_MESSAGE) {
      const part = pairs.slice(start, start + KEYS_A_MESSAGE);
      const value = { uids: part.map(([uid]) => uid), keys: part.map(([, key]) => key) };
      this.#say({ action: { $case: "sortKeys", value }, cause });
    }
  }

  /** Hear what is said from now on; the returned function ends it. */
  listen(listener: (message: RequeueResponse) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #say(what: Omit<RequeueResponse, "number">): void {
    const message = { ...what, number: ++this.lastNumber };
    for (const listener of this.#listeners) listener(message);
  }
}
