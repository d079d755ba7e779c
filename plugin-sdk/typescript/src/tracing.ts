/**
 * Spans for the calls answered, as children of the scheduler's, where they are collected.
 *
 * The scheduler sends its W3C context with the call. OTEL_* variables choose an OTLP collector, BERTH_TRACE_FILE a
 * file; a tracer provider that the program registered is used otherwise. Traces that the scheduler did not sample
 * are not written.
 */

import {
  createTraceState,
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { describe, TraceError } from "./errors.ts";
import { FileSpanExporter } from "./tracefile.ts";

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-|$)/;
/** The services of the calls that are not of the scheduling service. */
const SERVICES: Readonly<Record<string, string>> = {
  Handshake: "IdentityService",
  Configure: "IdentityService",
  GeneratePlacements: "PlacementService",
  ScorePlacements: "PlacementService",
  PlacementFeasible: "GroupService",
  PodGroupPostFilter: "GroupService",
  QueueingHints: "QueueingService",
  SortKeys: "QueueingService",
};
const NO_SPAN = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** The W3C trace context of a call. */
export interface TraceParent {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  /** The RPC system that brought it: gRPC where it is left out. */
  readonly system?: "ttrpc";
}

/** Opens spans for calls. */
export class Tracing {
  readonly #provider: BasicTracerProvider | undefined;
  readonly #tracer: Tracer;

  constructor(name: string, version: string, exporters: readonly SpanExporter[] = []) {
    if (exporters.length) this.#provider = provider(name, version, exporters);
    this.#tracer = (this.#provider ?? trace).getTracer("@berth/plugin-sdk", version);
  }

  /**
   * What OTEL_* and BERTH_TRACE_FILE ask for.
   * @throws TraceError if it can't be had.
   */
  static async fromEnvironment(name: string, version: string, environment = process.env): Promise<Tracing> {
    const exporters: SpanExporter[] = [];
    if (environment.BERTH_TRACE_FILE) exporters.push(new FileSpanExporter(environment.BERTH_TRACE_FILE));
    const endpoint =
      environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || environment.OTEL_EXPORTER_OTLP_ENDPOINT;
    if (endpoint && environment.OTEL_TRACES_EXPORTER !== "none") exporters.push(await otlp(environment));
    return new Tracing(name, version, exporters);
  }

  /** The span of a call, to be ended with `close`. */
  open(name: string, parent: TraceParent): Span {
    const found = parent.traceparent && TRACEPARENT.exec(parent.traceparent);
    if (!found) return NO_SPAN;
    const [, traceId = "", spanId = "", flags = ""] = found;
    const traceState = parent.tracestate ? createTraceState(parent.tracestate) : undefined;
    const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true, traceState };
    const context = trace.setSpanContext(ROOT_CONTEXT, remote as Parameters<typeof trace.setSpanContext>[1]);
    return this.#tracer.startSpan(name, { kind: SpanKind.SERVER }, context);
  }

  /** Write out what is pending. */
  async shutdown(): Promise<void> {
    await this.#provider?.shutdown();
  }
}

/** What was called and how it ended, by OpenTelemetry's semantic conventions 1.44 for RPC servers. */
export function described(method: string, system: string, code: string): Record<string, string> {
  return {
    "rpc.system.name": system,
    "rpc.method": `berth.plugin.v1.${SERVICES[method] ?? "SchedulingService"}/${method}`,
    "rpc.response.status_code": code,
    ...(code === "OK" ? {} : { "error.type": code }),
  };
}

/** End a span; with an error, say so. */
export function close(span: Span, attributes: Record<string, string | number>, error?: unknown): void {
  if (span.isRecording()) {
    span.setAttributes(attributes);
    if (error) span.setStatus({ code: SpanStatusCode.ERROR, message: describe(error) });
  }
  span.end();
}

function provider(name: string, version: string, exporters: readonly SpanExporter[]): BasicTracerProvider {
  return new BasicTracerProvider({
    resource: detectResources({ detectors: [envDetector] }).merge(
      resourceFromAttributes({
        "service.name": process.env.OTEL_SERVICE_NAME || name,
        "service.version": version,
      }),
    ),
    ...(process.env.OTEL_TRACES_SAMPLER
      ? {}
      : { sampler: new ParentBasedSampler({ root: new AlwaysOffSampler() }) }),
    spanProcessors: exporters.map((exporter) => new BatchSpanProcessor(exporter)),
  });
}

async function otlp(environment: NodeJS.ProcessEnv): Promise<SpanExporter> {
  const protocol =
    environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || environment.OTEL_EXPORTER_OTLP_PROTOCOL || "grpc";
  if (protocol !== "grpc")
    throw new TraceError(`OTEL_EXPORTER_OTLP_PROTOCOL: "${protocol}" is not served here, grpc is`);
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-grpc");
  return new OTLPTraceExporter();
}
