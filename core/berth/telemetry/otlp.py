"""OTLP over gRPC from our own spans: the standard exporter, with a shorter way to what it sends.

The exporter's settings, connection and retries are OpenTelemetry's. Its encoder takes five times as long as
this one, and the scheduling loop would wait for it, as both share the interpreter:
docs/decisions/0035-otlp-encoder.md has the figures.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import SpanFlags, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult

from berth.telemetry.spans import Span

SCOPE_NAME = "berth"
# It is known whether the parent is of another process: it is not.
FLAGS = SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK

_bytes = bytes.fromhex


class OtlpExporter:
    """A sink that sends spans to an OTLP collector over gRPC, by the OTEL_EXPORTER_OTLP_* variables."""

    def __init__(self, resource: Mapping[str, Any]) -> None:
        self._exporter = _Exporter(Resource.create(dict(resource)).attributes)

    def export(self, spans: Sequence[Span]) -> bool:
        """Send the spans; the exporter tries again as its settings say."""
        return self._exporter.send(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


class _Exporter(OTLPSpanExporter):
    """OpenTelemetry's, for our spans in place of the SDK's."""

    def __init__(self, resource: Mapping[str, Any]) -> None:
        super().__init__()
        self._resource = resource

    def send(self, spans: Sequence[Any]) -> SpanExportResult:
        """Export them."""
        return self._export(spans)

    def _translate_data(self, data: Sequence[Any]) -> ExportTraceServiceRequest:
        return request_of(data, self._resource)


def request_of(spans: Sequence[Span], resource: Mapping[str, Any]) -> ExportTraceServiceRequest:
    """The request that exports the spans."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    _put(group.resource.attributes, resource)
    scope = group.scope_spans.add()
    scope.scope.name = SCOPE_NAME
    add = scope.spans.add
    for span in spans:
        made = add(
            trace_id=_bytes(span.trace_id),
            span_id=_bytes(span.span_id),
            parent_span_id=_bytes(span.parent_span_id),
            name=span.name,
            kind=span.kind,
            start_time_unix_nano=span.start_time_unix_nano,
            end_time_unix_nano=span.end_time_unix_nano,
            flags=FLAGS,
        )
        if span.attributes:
            _put(made.attributes, span.attributes)
        if span.status.code:
            made.status.code = Status.StatusCode.ValueType(span.status.code)
            made.status.message = span.status.message
        for link in span.links:
            linked = made.links.add(trace_id=_bytes(link.trace_id), span_id=_bytes(link.span_id))
            linked.flags = FLAGS
            _put(linked.attributes, link.attributes)
    return request


def _put(into: Any, attributes: Mapping[str, Any]) -> None:
    for key, value in attributes.items():
        _set(into.add(key=key).value, value)


def _set(made: AnyValue, value: Any) -> None:
    """Set the field of the value's type; spans and resources have no others but lists of these."""
    kind = type(value)
    if kind is str:
        made.string_value = value
    elif kind is bool:
        made.bool_value = value
    elif kind is int:
        made.int_value = value
    elif kind is float:
        made.double_value = value
    else:
        for each in value:
            _set(made.array_value.values.add(), each)
