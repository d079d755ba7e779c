package berth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"

	"berth.dev/plugin-sdk/go/berth"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	sampled = "00-" + traceID + "-" + spanID + "-01"
)

// tracedFilter asks Filter once in a conversation and gives the spans.
func tracedFilter(t *testing.T, traceparent string, exporter sdktrace.SpanExporter) {
	t.Helper()
	tracing := berth.NewTracing("team-nodes", "1", exporter)
	r := dial(t, teamNodes(), berth.WithTracing(tracing))
	r.configure()
	r.transferred()
	talk, err := r.scheduling.Converse(r.ctx)
	must(t, err)
	asked := &pb.ConverseRequest_Filter{Filter: &pb.FilterRequest{Call: head(1)}}
	must(t, talk.Send(&pb.ConverseRequest{Id: 1, Traceparent: &traceparent, Call: asked}))
	_, err = talk.Recv()
	must(t, err)
	must(t, tracing.Shutdown(t.Context()))
}

// kept is what an exporter was given; the one in memory forgets at shutdown.
type kept struct {
	tracetest.InMemoryExporter
	spans tracetest.SpanStubs
}

func (k *kept) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func TestSpansAreChildrenOfTheSchedulers(t *testing.T) {
	exporter := &kept{}

	tracedFilter(t, sampled, exporter)

	if len(exporter.spans) != 1 {
		t.Fatalf("%d spans", len(exporter.spans))
	}
	span := exporter.spans[0]
	if span.Name != "team-nodes/Filter" || span.Parent.SpanID().String() != spanID || span.SpanContext.TraceID().String() != traceID {
		t.Errorf("span %s of %v", span.Name, span.Parent)
	}
	got := attribute.NewSet(span.Attributes...)
	want := attribute.NewSet(
		attribute.String("berth.plugin", "team-nodes"), attribute.String("rpc.system.name", "grpc"),
		attribute.String("rpc.method", "berth.plugin.v1.SchedulingService/Filter"),
		attribute.String("rpc.response.status_code", "OK"),
		attribute.Int64("berth.generation", 1),
		attribute.Int("berth.nodes.passed", 0), attribute.Int("berth.nodes.rejected", 2),
	)
	if !got.Equals(&want) {
		t.Errorf("attributes %v", span.Attributes)
	}
}

func TestTracesThatWereNotSampledAreNotWritten(t *testing.T) {
	exporter := &kept{}

	tracedFilter(t, sampled[:len(sampled)-1]+"0", exporter)

	if len(exporter.spans) != 0 {
		t.Errorf("%d spans", len(exporter.spans))
	}
}

func TestCallsOfTheirOwnCarryTheContextAsMetadata(t *testing.T) {
	exporter := &kept{}
	tracing := berth.NewTracing("team-nodes", "1", exporter)
	r := dial(t, teamNodes(), berth.WithTracing(tracing))
	r.ctx = metadata.AppendToOutgoingContext(r.ctx, "traceparent", sampled)

	_, _, err := r.filter(head(1)) // not configured
	must(t, tracing.Shutdown(t.Context()))

	if err == nil || len(exporter.spans) != 1 || exporter.spans[0].Status.Description == "" {
		t.Errorf("%v, spans %v", err, exporter.spans)
	}
}

func TestATraceFileHasALineForEachSpan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans")
	file, err := berth.NewTraceFile(path)
	must(t, err)

	tracedFilter(t, sampled, file)

	read, err := os.Open(path)
	must(t, err)
	defer read.Close()
	lines := bufio.NewScanner(read)
	lines.Scan()
	var line map[string]any
	must(t, json.Unmarshal(lines.Bytes(), &line))
	if line["traceId"] != traceID || line["parentSpanId"] != spanID || line["kind"] != 2.0 || lines.Scan() {
		t.Errorf("line %v", line)
	}
}

func TestTheEnvironmentChoosesWhereSpansGo(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")

	_, err := berth.TracingFromEnvironment(t.Context(), "x", "1")

	if want := `OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" is not served here, grpc is`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
