package berth

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

var (
	endpointVariables = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}
	protocolVariables = []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}
	propagator        = propagation.TraceContext{}
)

// Tracing opens spans for the calls that are answered, as children of the
// scheduler's, where they are collected; made without exporters it opens none.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTracing writes spans to these exporters.
func NewTracing(name, version string, exporters ...sdktrace.SpanExporter) *Tracing {
	made := &Tracing{}
	if len(exporters) == 0 {
		return made
	}
	service := os.Getenv("OTEL_SERVICE_NAME")
	if service == "" {
		service = name
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(described(service, version))}
	if _, chosen := os.LookupEnv("OTEL_TRACES_SAMPLER"); !chosen {
		// Exactly the traces that the scheduler sampled.
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	}
	for _, exporter := range exporters {
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	made.provider = sdktrace.NewTracerProvider(options...)
	made.tracer = made.provider.Tracer("berth.dev/plugin-sdk/go", trace.WithInstrumentationVersion(version))
	return made
}

// described is the resource: what OTEL_RESOURCE_ATTRIBUTES says, and who writes.
func described(service, version string) *resource.Resource {
	own := resource.NewSchemaless(
		attribute.String("service.name", service), attribute.String("service.version", version),
	)
	// Attributes that can't be read are left out, and the others are used.
	given, _ := resource.New(context.Background(), resource.WithFromEnv())
	if merged, err := resource.Merge(given, own); err == nil {
		return merged
	}
	return own
}

// TracingFromEnvironment writes spans where OTEL_* and BERTH_TRACE_FILE say.
//
// Errors: that can't be had.
func TracingFromEnvironment(ctx context.Context, name, version string) (*Tracing, error) {
	var exporters []sdktrace.SpanExporter
	if path := os.Getenv("BERTH_TRACE_FILE"); path != "" {
		file, err := NewTraceFile(path)
		if err != nil {
			return nil, err
		}
		exporters = append(exporters, file)
	}
	if os.Getenv("OTEL_TRACES_EXPORTER") != "none" && firstSet(endpointVariables) != "" {
		if protocol := firstSet(protocolVariables); protocol != "" && protocol != "grpc" {
			return nil, fmt.Errorf("%s: %q is not served here, grpc is", protocolVariables[1], protocol)
		}
		exporter, err := otlptracegrpc.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("traces over OTLP: %w", err)
		}
		exporters = append(exporters, exporter)
	}
	return NewTracing(name, version, exporters...), nil
}

// Shutdown writes out what is pending.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// span opens the span of a call.
func (t *Tracing) span(ctx context.Context, name string, carrier propagation.TextMapCarrier) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	ctx = propagator.Extract(ctx, carrier)
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
}

// endSpan says how the call ended, by OpenTelemetry's semantic conventions
// 1.44 for RPC servers.
func endSpan(span trace.Span, err error) {
	if span.IsRecording() {
		code := "OK"
		if err != nil {
			code = codeName(asCallError(err).code)
			span.SetAttributes(attribute.String("error.type", code))
			span.SetStatus(codes.Error, err.Error())
		}
		span.SetAttributes(attribute.String("rpc.response.status_code", code))
	}
	span.End()
}

// traceCarrier is trace context on its way in, and the system that brought it.
type traceCarrier struct {
	propagation.MapCarrier
	system string
}

func carrierOver(system string) traceCarrier {
	return traceCarrier{propagation.MapCarrier{}, system}
}

func metadataCarrier(ctx context.Context) traceCarrier {
	incoming, _ := metadata.FromIncomingContext(ctx)
	carrier := carrierOver("grpc")
	for _, key := range propagator.Fields() {
		if values := incoming.Get(key); len(values) > 0 {
			carrier.Set(key, values[0])
		}
	}
	return carrier
}

func firstSet(variables []string) string {
	for _, name := range variables {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}
