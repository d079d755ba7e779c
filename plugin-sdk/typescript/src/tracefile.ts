/**
 * Spans as lines of JSON in a file, for runs without a collector.
 *
 * A line has traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes, resource and
 * status, with hex ids and numbers as in OTLP/JSON. Several processes may append to one file.
 */

import { closeSync, openSync, writeSync } from "node:fs";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-base";
import { describe, TraceError } from "./errors.ts";

type Done = Parameters<SpanExporter["export"]>[1];

/** Appends spans to a file. */
export class FileSpanExporter implements SpanExporter {
  #file: number | undefined;

  /** @throws TraceError if the file can't be opened. */
  constructor(path: string) {
    try {
      this.#file = openSync(path, "a", 0o644);
    } catch (error) {
      throw new TraceError(`trace file ${path}: ${describe(error)}`);
    }
  }

  /** Write one line a span. */
  export(spans: ReadableSpan[], done: Done): void {
    try {
      if (this.#file !== undefined) writeSync(this.#file, spans.map((span) => `${line(span)}\n`).join(""));
      done({ code: 0 });
    } catch (error) {
      done({ code: 1, error: error as Error });
    }
  }

  /** Close the file; later spans are not written. */
  async shutdown(): Promise<void> {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function line(span: ReadableSpan): string {
  const { traceId, spanId } = span.spanContext();
  const fields = {
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? "",
    name: span.name,
    kind: span.kind + 1,
    attributes: span.attributes,
    resource: span.resource.attributes,
    status: { code: span.status.code, message: span.status.message ?? "" },
  };
  // Nanoseconds are whole numbers, too long for a JavaScript number to say.
  const times = `"startTimeUnixNano":${nanos(span.startTime)},"endTimeUnixNano":${nanos(span.endTime)}`;
  return `${JSON.stringify(fields).slice(0, -1)},${times}}`;
}

function nanos([seconds, rest]: readonly [number, number]): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(rest);
}
