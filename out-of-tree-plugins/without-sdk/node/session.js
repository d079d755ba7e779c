/** What all services of the process share: profiles, the state that is held, readiness. */

import { EventEmitter, once } from "node:events";
import { Metadata, status } from "@grpc/grpc-js";
import { Held, Refused } from "./held.js";

const READINESS = "berth.plugin.v1.SchedulingService";

export class Session {
  /** The label that each profile's arguments name. */
  labels = new Map();
  /** The Sync stream that was opened last, the only one that counts. */
  stream = undefined;
  #held = new Held();
  #changes = new EventEmitter().setMaxListeners(0);
  #health;

  constructor(health) {
    this.#health = health;
    this.changed();
  }

  get held() {
    return this.#held;
  }

  hold(state) {
    this.#held = state;
    this.changed();
  }

  /** Wakes the calls that wait for a generation, and reports whether calls can be answered. */
  changed() {
    const ready = this.labels.size > 0 && this.#held.generation > 0;
    this.#health.setStatus(READINESS, ready ? "SERVING" : "NOT_SERVING");
    this.#changes.emit("changed");
  }

  /** The label that the profile's arguments name. */
  labelOf(profile) {
    if (!this.labels.has(profile)) throw precondition("NOT_CONFIGURED", "the profile was not configured");
    return this.labels.get(profile);
  }

  /** Waits for the call's generation, until the signal says that the caller has gone. */
  async stateFor(call, signal) {
    this.#takeOver(call);
    while (this.#held.epoch === call.epoch && this.#held.generation < call.generation) {
      await once(this.#changes, "changed", { signal });
    }
    if (this.#held.generation === 0 || this.#held.epoch !== call.epoch) {
      throw precondition("NOT_SYNCED", "another epoch is held, or none");
    }
    if (call.generation < this.#held.indicesSince) {
      throw precondition("GENERATION_GONE", "nodes have other indices now");
    }
    return this.#held;
  }

  /** Takes the steps that the call brings. After a gap the stream will bring what is missing. */
  #takeOver({ epoch, deltas }) {
    if (deltas.length === 0 || this.#held.epoch !== epoch) return;
    try {
      for (const delta of deltas) this.#held.follow(delta);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.reason !== "NACK_REASON_GAP") {
        this.hold(new Held());
        throw precondition("NOT_SYNCED", error.message);
      }
    }
    this.changed();
  }
}

/** The error that says what the host has to do before it repeats the call. */
export function precondition(reason, details) {
  const metadata = new Metadata();
  metadata.set("berth-reason", reason);
  return Object.assign(new Error(details), { code: status.FAILED_PRECONDITION, details, metadata });
}

export function invalid(details) {
  return Object.assign(new Error(details), { code: status.INVALID_ARGUMENT, details });
}
