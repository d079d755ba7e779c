package berth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// TraceFile appends spans to a file, one JSON object a line, with ids in hex and
// numbers for kind and status as in OTLP/JSON. Several processes may append to
// one file: each batch is one write.
type TraceFile struct{ file *os.File }

// NewTraceFile opens the file for appending, and makes it if it isn't there.
func NewTraceFile(path string) (*TraceFile, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("trace file: %w", err)
	}
	return &TraceFile{file}, nil
}

// ExportSpans writes one line a span.
func (f *TraceFile) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, span := range spans {
		if err := encoder.Encode(spanLine(span)); err != nil {
			return fmt.Errorf("trace file: %w", err)
		}
	}
	if _, err := f.file.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("trace file: %w", err)
	}
	return nil
}

// Shutdown closes the file.
func (f *TraceFile) Shutdown(context.Context) error { return f.file.Close() }

func spanLine(span sdktrace.ReadOnlySpan) map[string]any {
	parent := ""
	if span.Parent().HasSpanID() {
		parent = span.Parent().SpanID().String()
	}
	return map[string]any{
		"traceId":           span.SpanContext().TraceID().String(),
		"spanId":            span.SpanContext().SpanID().String(),
		"parentSpanId":      parent,
		"name":              span.Name(),
		"kind":              int(span.SpanKind()),
		"startTimeUnixNano": span.StartTime().UnixNano(),
		"endTimeUnixNano":   span.EndTime().UnixNano(),
		"attributes":        values(span.Attributes()),
		"resource":          values(span.Resource().Attributes()),
		"status":            map[string]any{"code": statusNumber(span.Status().Code), "message": span.Status().Description},
	}
}

// statusNumber maps this library's order (unset, error, ok) to OTLP's.
func statusNumber(code codes.Code) int {
	switch code {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

func values(attributes []attribute.KeyValue) map[string]any {
	made := make(map[string]any, len(attributes))
	for _, each := range attributes {
		made[string(each.Key)] = each.Value.AsInterface()
	}
	return made
}
