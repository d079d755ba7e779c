/**
 * StateService: follow the host's state stream.
 *
 *     WAITING --begin, full--> TRANSFERRING --commit--> FOLLOWING
 *       |   ^                                            |  ^
 *       |   +------------------ Nack --------------------+  |
 *       +----------------------begin, resume----------------+
 *
 * The stream opened last is the one that counts; older ones end.
 */

import { describe, SyncError } from "./errors.ts";
import {
  type Begin,
  type Commit,
  NackReason,
  type SyncRequest,
  type SyncResponse,
} from "./generated/berth/plugin/v1/state.ts";
import { log } from "./log.ts";
import { decode, type Step } from "./mirror.ts";
import type { Session } from "./session.ts";

type Stage = "WAITING" | "TRANSFERRING" | "FOLLOWING";

/** One Sync stream's place in the protocol. */
export class Stream {
  readonly #session: Session;
  #stage: Stage = "WAITING";
  #epoch = "";
  #steps: Step[] = [];
  /** Whether the host has said the time on this stream. */
  #timed = false;

  constructor(session: Session) {
    this.#session = session;
  }

  /** The first message: what survived the last stream. */
  held(): SyncResponse {
    const { epoch, generation } = this.#session.mirror;
    return { body: { $case: "held", value: { epoch, generation } } };
  }

  /** Take one message; Ack, Nack, or undefined where there is nothing to say. */
  answer(request: SyncRequest): SyncResponse | undefined {
    const { mirror, meter } = this.#session;
    const before = mirror.generation;
    try {
      return this.#take(request);
    } catch (error) {
      mirror.drop();
      this.#stage = "WAITING";
      this.#steps = [];
      const reason = error instanceof SyncError ? error.reason : NackReason.MISMATCH;
      const message = describe(error);
      log.warn("state refused", { message });
      meter.refused(Object.entries(NackReason).find(([, value]) => value === reason)?.[0] ?? "");
      return { body: { $case: "nack", value: { generation: generationOf(request), reason, message } } };
    } finally {
      if (before !== mirror.generation) this.#session.announce();
    }
  }

  #take({ body }: SyncRequest): SyncResponse | undefined {
    if (body?.$case === "time" && this.#session.plugin.usesClock) return this.#time(body.value.unixMicros);
    if (body?.$case === "begin") return this.#begin(body.value);
    if (body?.$case === "chunk" && this.#stage === "TRANSFERRING") {
      for (const step of decode(body.value.changes)) this.#steps.push(step);
      return undefined;
    }
    if (body?.$case === "commit" && this.#stage === "TRANSFERRING") return this.#commit(body.value);
    if (body?.$case === "delta" && this.#stage === "FOLLOWING") {
      this.#session.mirror.follow(body.value);
      return this.#ack();
    }
    throw new SyncError(
      NackReason.OUT_OF_ORDER,
      `${body?.$case} does not belong into the stage ${this.#stage}`,
    );
  }

  #begin({ epoch, resumeGeneration }: Begin): SyncResponse | undefined {
    if (!epoch) throw new SyncError(NackReason.OUT_OF_ORDER, "an epoch needs a name");
    if (!this.#timed) this.#session.plugin.clock.own();
    this.#epoch = epoch;
    this.#steps = [];
    if (resumeGeneration === undefined) {
      this.#stage = "TRANSFERRING";
      return undefined;
    }
    const { mirror } = this.#session;
    if (epoch !== mirror.epoch || resumeGeneration < 1 || resumeGeneration > mirror.generation) {
      throw new SyncError(
        NackReason.CANNOT_RESUME,
        `${mirror.generation} of epoch "${mirror.epoch}" is held`,
      );
    }
    this.#stage = "FOLLOWING";
    return this.#ack();
  }

  #time(unixMicros: number): SyncResponse {
    this.#timed = true;
    const { clock, requeue } = this.#session.plugin;
    const wakeAtUnixMicros = clock.reach(unixMicros);
    const value = { unixMicros, wakeAtUnixMicros, lastRequeue: requeue.lastNumber };
    return { body: { $case: "timeReached", value } };
  }

  #commit(commit: Commit): SyncResponse {
    if (commit.generation < 1) throw new SyncError(NackReason.OUT_OF_ORDER, "generations start at 1");
    const steps = this.#steps;
    this.#steps = [];
    this.#session.mirror.replace(this.#epoch, commit, steps);
    this.#stage = "FOLLOWING";
    return this.#ack();
  }

  #ack(): SyncResponse {
    return { body: { $case: "ack", value: { generation: this.#session.mirror.generation } } };
  }
}

function generationOf({ body }: SyncRequest): number {
  return body?.$case === "commit" || body?.$case === "delta" ? body.value.generation : 0;
}
