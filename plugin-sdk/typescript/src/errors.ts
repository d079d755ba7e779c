/** What can go wrong between a plugin, its author and the scheduler. */

import { status } from "@grpc/grpc-js";
import type { NackReason } from "./generated/berth/plugin/v1/state.ts";

const LONGEST_ERROR = 512;

/** Base of everything the SDK throws. */
export class SdkError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** The arguments of a profile are wrong; each error reads `path: what is wrong`. */
export class ArgumentError extends SdkError {
  readonly errors: readonly string[];

  constructor(...errors: string[]) {
    super(errors.join("; "));
    this.errors = errors;
  }
}

/** A plugin function failed, or returned something that can't be sent. */
export class ContractError extends SdkError {
  /** Whether the log has it already, with its stack. */
  logged = false;
}

/** The plugin can't be served at this address. */
export class AddressError extends SdkError {}

/** The environment asks for traces that can't be written. */
export class TraceError extends SdkError {}

/** A message of the state stream can't be applied to what is held. */
export class SyncError extends SdkError {
  readonly reason: NackReason;

  constructor(reason: NackReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The values of the `berth-reason` trailing metadata, each with what the host does. */
export type Cause =
  | "NOT_CONFIGURED" // configures the profile, then repeats
  | "NOT_SYNCED" // opens Sync, waits for the Ack, then repeats
  | "GENERATION_GONE" // repeats with a newer generation
  | "POD_UNKNOWN"; // repeats with the pod's object

/** A call that is not answered, as a gRPC status. */
export class CallError extends SdkError {
  readonly code: status;
  readonly remedy: Cause | "";

  constructor(code: status, message: string, remedy: Cause | "" = "") {
    super(message);
    this.code = code;
    this.remedy = remedy;
  }
}

/** The call's sender can repair what is missing, and repeats it. */
export function unmet(cause: Cause, message: string): CallError {
  return new CallError(status.FAILED_PRECONDITION, message, cause);
}

/** The call makes no sense. */
export function invalid(message: string): CallError {
  return new CallError(status.INVALID_ARGUMENT, message);
}

/** Any failure as the status that the host gets. */
export function asCallError(error: unknown): CallError {
  if (error instanceof CallError) return error;
  return new CallError(status.INTERNAL, describe(error));
}

/** As much of a text as the host reads: 8 KiB of trailers, of which this is at most 6, percent-encoded. */
export function shortened(text: string): string {
  return [...text].slice(0, LONGEST_ERROR).join("");
}

/** An error in one line. */
export function describe(error: unknown): string {
  if (error instanceof SdkError) return error.message;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
