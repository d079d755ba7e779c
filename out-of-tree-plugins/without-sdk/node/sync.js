/** StateService: follow the host's state stream. */

import { Held, Refused } from "./held.js";

/** One stream's place in the protocol. */
class Stream {
  #session;
  #stage = "WAITING";
  #epoch = "";
  #changes = [];

  constructor(session) {
    this.#session = session;
  }

  /** The answer to one message, undefined where there is none. */
  answer(request) {
    const body = request[request.body];
    try {
      if (!this.#take(request.body, body)) return undefined;
      this.#session.changed();
      return { ack: { generation: this.#session.held.generation } };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#stage = "WAITING";
      this.#session.hold(new Held());
      return { nack: { generation: body?.generation ?? 0, reason: error.reason, message: error.message } };
    }
  }

  /** Takes one message; true if it is acknowledged. */
  #take(kind, body) {
    switch (kind) {
      case "begin":
        return this.#begin(body);
      case "chunk":
        this.#expect("TRANSFERRING");
        this.#changes.push(...body.changes);
        return false;
      case "commit":
        this.#expect("TRANSFERRING");
        this.#session.hold(Held.transferred(this.#epoch, body, this.#changes));
        this.#changes = [];
        this.#stage = "FOLLOWING";
        return true;
      case "delta":
        this.#expect("FOLLOWING");
        this.#session.held.follow(body);
        return true;
      default:
        throw new Refused("OUT_OF_ORDER", "an unknown message");
    }
  }

  #begin(begin) {
    this.#epoch = begin.epoch;
    this.#changes = [];
    if (!begin._resume_generation) {
      this.#stage = "TRANSFERRING";
      return false;
    }
    const { epoch, generation } = this.#session.held;
    const from = begin.resume_generation;
    if (begin.epoch !== epoch || from < 1 || from > generation) {
      throw new Refused("CANNOT_RESUME", "that is not held");
    }
    this.#stage = "FOLLOWING";
    return true;
  }

  #expect(stage) {
    if (this.#stage !== stage) throw new Refused("OUT_OF_ORDER", `not in stage ${this.#stage}`);
  }
}

export function sync(session) {
  return {
    Sync: (call) => {
      const stream = new Stream(session);
      session.stream = stream;
      const { epoch, generation } = session.held;
      call.write({ held: { epoch, generation } });
      call.on("data", (request) => {
        if (session.stream !== stream) return call.end();
        const answer = stream.answer(request);
        if (answer) call.write(answer);
      });
      call.on("end", () => call.end());
      call.on("error", () => {}); // The connection was lost; the host opens another stream.
    },
  };
}
