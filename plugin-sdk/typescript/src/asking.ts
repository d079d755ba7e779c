/** Asking the author's functions; what they throw fails the attempt, never the process. */

import { ContractError, describe } from "./errors.ts";
import { failures } from "./failurelog.ts";
import type { Status as StatusMessage } from "./generated/berth/plugin/v1/common.ts";
import { log } from "./log.ts";
import { Code, type Maybe, type Status, statusOf } from "./outcomes.ts";
import type { Plugin } from "./plugin.ts";

/**
 * What the author's function returns, at once unless it is a promise.
 * @throws ContractError if it failed.
 */
export function ask<Result>(name: string, question: () => Maybe<Result>): Maybe<Result> {
  try {
    const answer = question();
    return isPromise(answer) ? answer.catch((error) => failed(name, error)) : answer;
  } catch (error) {
    return failed(name, error);
  }
}

/**
 * What a function about nodes returned, which must not come later: nothing waits for it there.
 * @throws ContractError if it is a promise.
 */
export function atOnce<Result>(name: string, answer: Result): Result {
  if (!(answer instanceof Promise)) return answer;
  // Nothing else looks at it, and an unhandled rejection would end the process.
  answer.catch((error: unknown) => log.warn("ignored", { function: name, error: describe(error) }));
  throw new ContractError(`${name} has to answer at once, not with a promise`);
}

/** The author's verdict on the pod; a failure is one too. */
export function verdict(name: string, question: () => unknown): Maybe<StatusMessage> {
  return then(
    () => then(() => ask(name, question), statusOf),
    packStatus,
    (error) => {
      report(name, error);
      return { code: Code.ERROR, reasons: [describe(error)] };
    },
  );
}

/** Tell the author something; a failure is logged and nothing else. */
export function tell(name: string, question: () => unknown): Maybe<unknown> {
  return then(
    () => ask(name, question),
    () => undefined,
    (error) => report(name, error),
  );
}

/**
 * Go on with a value that may be a promise, without waiting where it is none: calls that need no wait are answered
 * in the order in which they came.
 */
export function then<From, To>(
  start: () => Maybe<From>,
  next: (value: From) => Maybe<To>,
  failed?: (error: unknown) => Maybe<To>,
): Maybe<To> {
  try {
    const value = start();
    if (isPromise(value)) return failed ? value.then(next).catch(failed) : value.then(next);
    const result = next(value);
    return failed && isPromise(result) ? result.catch(failed) : result;
  } catch (error) {
    if (failed) return failed(error);
    throw error;
  }
}

/** Whether a value comes later. */
export function isPromise<Result>(value: Maybe<Result>): value is Promise<Result> {
  return value instanceof Promise;
}

/** The message of a status. */
export function packStatus(status: Status): StatusMessage {
  return { code: status.code, reasons: [...status.reasons] };
}

/**
 * The status of an author's failure, which is logged: the scheduler may go on without it.
 * @throws the error itself if it is another.
 */
export function failure(plugin: Plugin, error: unknown): StatusMessage {
  if (!(error instanceof ContractError)) throw error;
  report(plugin.name, error);
  return { code: Code.ERROR, reasons: [`${plugin.name}: ${error.message}`] };
}

function failed(name: string, error: unknown): never {
  if (error instanceof ContractError) throw error;
  failures.failed({ function: name, stack: error instanceof Error ? error.stack : String(error) });
  const broken = new ContractError(`${name}: ${describe(error)}`);
  broken.logged = true;
  throw broken;
}

/** Log what is wrong with an answer; an exception is logged where it is thrown. */
function report(of: string, error: unknown): void {
  if (!(error instanceof ContractError && error.logged)) failures.failed({ of, error: describe(error) });
}
