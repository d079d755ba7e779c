/** The calls of SchedulingService by name: answered within a span, counted, as calls of their own or over the one stream. */

import { performance } from "node:perf_hooks";
import { type ServerDuplexStream, status } from "@grpc/grpc-js";
import { then } from "./asking.ts";
import * as binding from "./binding.ts";
import { asCallError, type CallError, invalid } from "./errors.ts";
import * as finding from "./finding.ts";
import type { Call as Head } from "./generated/berth/plugin/v1/common.ts";
import type { ConverseRequest, ConverseResponse } from "./generated/berth/plugin/v1/scheduling.ts";
import type { Maybe } from "./outcomes.ts";
import { filterOverlays } from "./overlays.ts";
import { answering } from "./plugin.ts";
import { keyOf, type Session } from "./session.ts";
import { close, described, type TraceParent, type Tracing } from "./tracing.ts";

/** How long a call without a deadline may wait for a generation. */
export const PATIENCE_MILLISECONDS = 10_000;

/** What answers a call. */
export type Answer = (session: Session, request: never, deadline: number) => Maybe<object>;

/** What answers each call of SchedulingService. */
export const CALLS: Readonly<Record<string, Answer>> = {
  preEnqueue: binding.preEnqueue,
  filter: finding.filter,
  score: finding.score,
  filterScore: finding.filterScore,
  filterOverlays,
  postFilter: binding.postFilter,
  reserve: binding.reserve,
  unreserve: binding.unreserve,
  permit: binding.permit,
  preBind: binding.preBind,
  bind: binding.bind,
  postBind: binding.postBind,
  cycleDone: binding.cycleDone,
};

/** Everything that answering needs. */
export class Answering {
  readonly session: Session;
  readonly #tracing: Tracing;

  constructor(session: Session, tracing: Tracing) {
    this.session = session;
    this.#tracing = tracing;
  }

  /** Answer a call by a function, and hand on the response or the error. */
  call(
    name: string,
    answer: Answer,
    request: object,
    parent: TraceParent,
    deadline: number,
    done: (error: CallError | undefined, response?: object) => void,
  ): void {
    const { plugin, mirror, meter } = this.session;
    const method = name.charAt(0).toUpperCase() + name.slice(1);
    const started = performance.now();
    const span = this.#tracing.open(`${plugin.name}/${method}`, parent);
    const finish = (error: CallError | undefined, response?: object) => {
      const code = status[error?.code ?? status.OK];
      close(
        span,
        {
          ...described(method, parent.system ?? "grpc", code),
          "berth.plugin": plugin.name,
          "berth.generation": mirror.generation,
        },
        error,
      );
      meter.answered(method, code, (performance.now() - started) / 1e3);
      done(error, response);
    };
    void then(
      () => this.#within(request, span, () => answer(this.session, request as never, deadline)),
      (response) => finish(undefined, response),
      (error) => finish(asCallError(error)),
    );
  }

  /** Answer all calls of a stream, each as soon as it has its answer. */
  converse(stream: ServerDuplexStream<ConverseRequest, ConverseResponse>): void {
    const take = ({ id, call, traceparent, timeout }: ConverseRequest) => {
      const reply = (error: CallError | undefined, response?: object) => {
        if (!stream.writable) return;
        stream.write(
          error
            ? failed(id, error)
            : ({ id, answer: { $case: call?.$case, value: response }, also: [] } as never),
        );
      };
      const answer = call && CALLS[call.$case];
      if (!answer) return reply(invalid("no such call"));
      const wait = timeout ? timeout.seconds * 1e3 + timeout.nanos / 1e6 : PATIENCE_MILLISECONDS;
      return this.call(call.$case, answer, call.value, { traceparent }, Date.now() + wait, reply);
    };
    stream.on("data", (request: ConverseRequest) => {
      for (const each of [request, ...request.also]) take(each);
    });
    stream.on("error", () => undefined);
    stream.on("end", () => stream.end());
  }

  #within<Result>(request: object, span: ReturnType<Tracing["open"]>, work: () => Result): Result {
    const call = (request as { call?: Head }).call;
    if (!call?.pod) return work();
    const shadow = this.session.plugin.inShadow(call.profile);
    return answering.run({ profile: call.profile, key: keyOf(call.pod), shadow, span }, work);
  }
}

function failed(id: number, { code, remedy, message }: CallError): ConverseResponse {
  return { id, answer: { $case: "error", value: { code, reason: remedy, message } }, also: [] };
}
