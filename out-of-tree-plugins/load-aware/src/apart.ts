/** Metrics fetched in a thread of its own: to read those of thousands of nodes takes longer than a scheduler waits. */

import { Worker } from "node:worker_threads";
import { type Outcome, unpack } from "./crossing.ts";
import type { Readings, Source } from "./readings.ts";
import type { Settings } from "./settings.ts";

/** The metrics that the arguments name; the thread begins with the first fetch and ends with its signal. */
export class Apart implements Source {
  readonly #settings: Settings;
  #thread: Worker | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  async fetch(signal: AbortSignal): Promise<Readings> {
    signal.throwIfAborted();
    this.#thread ??= this.#begun(signal);
    const outcome = await answered(this.#thread);
    if ("error" in outcome) throw new Error(outcome.error);
    return unpack(outcome.packed);
  }

  #begun(signal: AbortSignal): Worker {
    const thread = new Worker(new URL("./thread.ts", import.meta.url), { workerData: this.#settings });
    const end = () => void thread.terminate();
    signal.addEventListener("abort", end, { once: true });
    // A thread that fails is followed by another one at the next fetch.
    const ended = () => {
      signal.removeEventListener("abort", end);
      if (this.#thread === thread) this.#thread = undefined;
    };
    thread.once("error", ended).once("exit", ended);
    // A fetch must not keep a process alive that was asked to stop.
    thread.unref();
    return thread;
  }
}

/** One fetch of the thread, or the error that it ended with. */
function answered(thread: Worker): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const heard = (outcome: Outcome) => resolve(outcome);
  const failed = (error: Error) => reject(error);
  const gone = () => reject(new Error("the thread that fetches metrics ended"));
  thread.on("message", heard).on("error", failed).on("exit", gone);
  thread.postMessage(undefined);
  return promise.finally(() => {
    thread.off("message", heard).off("error", failed).off("exit", gone);
  });
}
