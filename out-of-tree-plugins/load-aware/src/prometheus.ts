/** Prometheus: one instant query for each number that the strategy reads. */

import { type Endpoint, FetchError, getJson } from "./http.ts";
import type { Measured, Reading, Readings, Source } from "./readings.ts";
import type { Settings } from "./settings.ts";

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A value of each node, and when it was taken. */
type Vector = Map<string, { readonly at: number; readonly value: number }>;

/** The metrics of the Prometheus at the address. */
export class Prometheus implements Source {
  readonly #endpoint: Endpoint;
  readonly #label: string;
  readonly #queries: { readonly cpu: string; readonly memory: string };
  readonly #window: number;

  constructor(settings: Settings) {
    const { cpuQuery, memoryQuery, nodeLabel } = settings.prometheus;
    this.#endpoint = settings.metricProvider;
    this.#label = nodeLabel;
    this.#queries = { cpu: cpuQuery, memory: memoryQuery };
    this.#window = settings.strategy === "LoadVariationRiskBalancing" ? settings.windowSeconds : 0;
  }

  async fetch(signal: AbortSignal): Promise<Readings> {
    if (!this.#window) {
      const cpu = await this.#query(this.#queries.cpu, signal);
      return new Map([...cpu].map(([name, { at, value }]) => [name, { at, cpu: cores(value, 0) }]));
    }
    const [cpu, memory, cpuDeviation, memoryDeviation] = await Promise.all([
      this.#query(this.#over("avg", this.#queries.cpu), signal),
      this.#query(this.#over("avg", this.#queries.memory), signal),
      this.#query(this.#over("stddev", this.#queries.cpu), signal),
      this.#query(this.#over("stddev", this.#queries.memory), signal),
    ]);
    const found = new Map<string, Reading>();
    for (const [name, { at, value }] of cpu)
      found.set(name, { at, cpu: cores(value, cpuDeviation.get(name)?.value ?? 0) });
    for (const [name, { at, value: mean }] of memory) {
      const deviation = memoryDeviation.get(name)?.value ?? 0;
      found.set(name, { ...(found.get(name) ?? { at }), memory: { mean, deviation } });
    }
    return found;
  }

  /** Over the window, of the series that still go on: the past of one that ended would be reported for as long again. */
  #over(what: "avg" | "stddev", query: string): string {
    return `${what}_over_time((${query})[${this.#window}s:]) and (${query})`;
  }

  async #query(query: string, signal: AbortSignal): Promise<Vector> {
    const path = `/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = (await getJson(this.#endpoint, path, signal)) as {
      status?: string;
      error?: string;
      data?: { resultType?: string; result?: Series[] };
    } | null;
    const { resultType, result } = answer?.data ?? {};
    if (answer?.status !== "success" || resultType !== "vector" || !Array.isArray(result)) {
      throw new FetchError(`${query}: expected a vector, got ${answer?.error ?? resultType ?? "nothing"}`);
    }
    return this.#vector(query, result);
  }

  #vector(query: string, result: readonly Series[]): Vector {
    const found: Vector = new Map();
    for (const { metric, value } of result) {
      const name = metric[this.#label];
      if (name === undefined) {
        const labels = Object.keys(metric).join(", ") || "no label";
        throw new FetchError(
          `${query}: a series has ${labels}; set prometheus.nodeLabel to what names the node`,
        );
      }
      const amount = Number(value[1]);
      if (Number.isFinite(amount)) found.set(host(name), { at: value[0] * 1e3, value: amount });
    }
    return found;
  }
}

function cores(mean: number, deviation: number): Measured {
  return { mean: mean * 1e3, deviation: deviation * 1e3 };
}

/** A node's name or address, of a label that may carry a port. */
function host(label: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(label)?.[1] ?? /^([^:]*):\d+$/.exec(label)?.[1] ?? label;
}
