/** Vectors as they travel: bitmaps, reason codes, scores. */

import { ContractError } from "./errors.ts";
import type { SortKey as SortKeyMessage } from "./generated/berth/plugin/v1/queueing.ts";
import type {
  Verdicts as VerdictsMessage,
  Scores as ScoresMessage,
} from "./generated/berth/plugin/v1/scheduling.ts";
import {
  type Answer,
  type Code,
  Normalization,
  type Points,
  type Reason,
  type Scores,
  type SortKey,
  statusOf,
  type Verdicts,
} from "./outcomes.ts";

export const MAX_REASONS = 255;
const MAX_SCORE = 100;
const KEY_PARTS = 8;
const INT32 = 2 ** 31;

/** A mask with one byte an entry, 0 or 1. */
export type Mask = Uint8Array;

/** One bit an entry, least significant first. */
export function packBits(mask: ArrayLike<number | boolean>): Buffer {
  const bits = Buffer.alloc((mask.length + 7) >> 3);
  for (let i = 0; i < mask.length; i++) {
    if (mask[i]) bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
  }
  return bits;
}

/**
 * The mask that a bitmap says.
 * @throws RangeError if it is not for this many entries.
 */
export function unpackBits(bitmap: Uint8Array, count: number): Mask {
  const bytes = (count + 7) >> 3;
  if (bitmap.length !== bytes) {
    throw new RangeError(`a bitmap of ${count} entries has ${bytes} bytes, not ${bitmap.length}`);
  }
  const mask = new Uint8Array(count);
  for (let i = 0; i < count; i++) mask[i] = ((bitmap[i >> 3] as number) >> (i & 7)) & 1;
  return mask;
}

/**
 * What a vector filter answered, checked for its length and its table.
 * @throws ContractError if it can't be sent.
 */
export function checkedVerdicts(answer: unknown, count: number): Verdicts {
  const { codes, reasons } = (answer ?? {}) as Partial<Verdicts>;
  if (!(codes instanceof Uint8Array) || !Array.isArray(reasons)) {
    throw new ContractError("filterNodes: expected {codes, reasons} with codes of Uint8Array");
  }
  if (codes.length !== count)
    throw new ContractError(`filterNodes: expected ${count} codes, got ${codes.length}`);
  if (reasons.length > MAX_REASONS) {
    throw new ContractError(`filterNodes: ${reasons.length} reasons, at most ${MAX_REASONS} fit into a code`);
  }
  return { codes, reasons };
}

/**
 * The message; what was not asked is sent as 0.
 * @throws ContractError if a candidate's code points past the table.
 */
export function packVerdicts(verdicts: Verdicts, candidates?: Mask): VerdictsMessage {
  const each = Buffer.from(verdicts.codes);
  let highest = 0;
  for (let i = 0; i < each.length; i++) {
    if (candidates && !candidates[i]) each[i] = 0;
    if ((each[i] as number) > highest) highest = each[i] as number;
  }
  if (highest > verdicts.reasons.length) {
    throw new ContractError(`code ${highest} has no reason: there are ${verdicts.reasons.length}`);
  }
  if (!highest) return { codes: { $case: "all", value: 0 }, reasons: [] };
  const reasons = verdicts.reasons.map(({ code, text }) => ({ code, text }));
  return { codes: { $case: "each", value: each }, reasons };
}

/**
 * The codes with their table.
 * @throws RangeError if the message is not for this many nodes.
 */
export function unpackVerdicts(message: VerdictsMessage | undefined, count: number): Verdicts {
  const sent = message?.codes;
  const codes =
    sent?.$case === "each" ? new Uint8Array(sent.value) : new Uint8Array(count).fill(sent?.value ?? 0);
  if (codes.length !== count) throw new RangeError(`${codes.length} codes for ${count} nodes`);
  const reasons = (message?.reasons ?? []).map(({ code, text }) => ({ code: code as Code, text }));
  return { codes, reasons };
}

/**
 * The message in the narrowest form; what was not asked is sent as 0.
 * @throws ContractError for a wrong length, something that is no integer, or out of the normalization's range.
 */
export function packScores(answer: Scores, count: number, candidates?: Mask): ScoresMessage {
  const { points, normalization } = answer;
  if (points.length !== count) throw new ContractError(`expected ${count} scores, got ${points.length}`);
  const [low, high] = rangeOf(points, candidates);
  if (normalization === Normalization.NONE && (low < 0 || high > MAX_SCORE)) {
    throw new ContractError(
      `scores from ${low} to ${high} without normalization: 0 to ${MAX_SCORE} is the range`,
    );
  }
  if (low < 0 && (normalization === Normalization.MAX || normalization === Normalization.MAX_REVERSE)) {
    throw new ContractError(`score ${low} is negative, which this normalization can't map`);
  }
  return { values: narrowest(points, low, high, candidates), normalization };
}

/**
 * The lowest and the highest of 0 and the scores that are asked about.
 * @throws ContractError for something that is no integer.
 */
function rangeOf(points: Points, candidates: Mask | undefined): [number, number] {
  let [low, high]: (number | bigint)[] = [0, 0];
  for (let i = 0; i < points.length; i++) {
    if (candidates && !candidates[i]) continue;
    const value = points[i] as number | bigint;
    const fits = typeof value === "bigint" ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);
    if (!fits) {
      throw new ContractError(`a score is an integer of 64 bits, not ${value}`);
    }
    if (value < (low as number)) low = value;
    if (value > (high as number)) high = value;
  }
  return [low as number, high as number];
}

/** The points as they travel, written where they belong: a list of them in between would be left to be collected. */
function narrowest(
  points: Points,
  low: number,
  high: number,
  candidates: Mask | undefined,
): ScoresMessage["values"] {
  const asked = (i: number) => !candidates || candidates[i] !== 0;
  const count = points.length;
  if (low >= 0 && high <= 255) {
    const value = Buffer.alloc(count);
    for (let i = 0; i < count; i++) if (asked(i)) value[i] = Number(points[i]);
    return { $case: "uint8", value };
  }
  if (low >= -INT32 && high < INT32) {
    const value = Buffer.alloc(count * 4);
    for (let i = 0; i < count; i++) if (asked(i)) value.writeInt32LE(Number(points[i]), i * 4);
    return { $case: "int32", value };
  }
  const value = Buffer.alloc(count * 8);
  for (let i = 0; i < count; i++) if (asked(i)) value.writeBigInt64LE(BigInt(points[i] as number), i * 8);
  return { $case: "int64", value };
}

/**
 * The raw scores.
 * @throws RangeError if the message is not for this many nodes, or says nothing.
 */
export function unpackScores(message: ScoresMessage, count: number): number[] {
  const sent = message.values;
  if (!sent) throw new RangeError("scores without values");
  if (sent.$case === "all") return new Array(count).fill(sent.value);
  const width = { uint8: 1, int32: 4, int64: 8 }[sent.$case];
  if (sent.value.length !== count * width)
    throw new RangeError(`${sent.value.length / width} scores for ${count} nodes`);
  const read = {
    uint8: (at: number) => sent.value.readUInt8(at),
    int32: (at: number) => sent.value.readInt32LE(at),
    int64: (at: number) => Number(sent.value.readBigInt64LE(at)),
  }[sent.$case];
  return Array.from({ length: count }, (_, i) => read(i * width));
}

/** Whether an answer of scoreNodes names a normalization of its own. */
export function isScores(answer: Points | Scores): answer is Scores {
  return "points" in answer && "normalization" in answer;
}

/** The row of a reason in a table that is being made; reasons past the last row share one. */
export class ReasonTable {
  readonly reasons: Reason[] = [];
  readonly #rows = new Map<string, number>();

  /**
   * The code of a filter's answer.
   * @throws ContractError if it is none.
   */
  row(answer: Answer): number {
    const { code, reasons } = statusOf(answer);
    if (reasons.length !== 1) throw new ContractError("filter answers nothing, a text or a Reason");
    return this.code({ code, text: reasons[0] as string });
  }

  /** The code of a reason. */
  code(reason: Reason): number {
    const key = `${reason.code} ${reason.text}`;
    const known = this.#rows.get(key);
    if (known) return known;
    if (this.reasons.length === MAX_REASONS) return MAX_REASONS;
    const full = this.reasons.length === MAX_REASONS - 1;
    this.reasons.push(full ? { ...reason, text: "further reasons, more than one answer can hold" } : reason);
    this.#rows.set(key, this.reasons.length);
    return this.reasons.length;
  }
}

/**
 * The message of a sort key.
 * @throws ContractError if it is none.
 */
export function packSortKey(key: SortKey): SortKeyMessage {
  if (!Array.isArray(key) || key.length > KEY_PARTS || !key.every(Number.isSafeInteger)) {
    throw new ContractError(
      `a sort key is a list of at most ${KEY_PARTS} whole numbers, not ${JSON.stringify(key)}`,
    );
  }
  return { parts: [...key] };
}
