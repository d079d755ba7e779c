/** Readings as they cross from one thread to another: names, and five numbers each, which are handed over, not copied. */

import type { Measured, Reading, Readings } from "./readings.ts";

const NUMBERS = 5;

/** Readings in few pieces; NaN where a resource was not measured. */
export interface Packed {
  readonly names: readonly string[];
  readonly numbers: Float64Array<ArrayBuffer>;
}

/** What a fetch came to. */
export type Outcome = { readonly packed: Packed } | { readonly error: string };

/** The readings in few pieces. */
export function pack(readings: Readings): Packed {
  const numbers = new Float64Array(readings.size * NUMBERS);
  let next = 0;
  for (const { at, cpu, memory } of readings.values()) {
    numbers.set([at, ...both(cpu), ...both(memory)], next);
    next += NUMBERS;
  }
  return { names: [...readings.keys()], numbers };
}

/** The readings that were packed. */
export function unpack({ names, numbers }: Packed): Readings {
  const found = new Map<string, Reading>();
  for (const [i, name] of names.entries()) {
    const [at, ...rest] = numbers.subarray(i * NUMBERS, (i + 1) * NUMBERS) as unknown as Row;
    const [cpu, memory] = [measured(rest[0], rest[1]), measured(rest[2], rest[3])];
    found.set(name, { at, ...(cpu && { cpu }), ...(memory && { memory }) });
  }
  return found;
}

type Row = [at: number, cpu: number, cpuDeviation: number, memory: number, memoryDeviation: number];

function both(measured: Measured | undefined): [number, number] {
  return measured ? [measured.mean, measured.deviation] : [Number.NaN, Number.NaN];
}

function measured(mean: number, deviation: number): Measured | undefined {
  return Number.isNaN(mean) ? undefined : { mean, deviation };
}
