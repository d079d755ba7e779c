"""Spans through OpenTelemetry's own exporters: OTLP over HTTP, or any other that is installed.

OTLP over gRPC, which is what collectors are sent as a rule, has a shorter way (otlp.py).
The SDK's read-only spans are built directly, without its tracer: their times are known by then.
"""

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from berth.telemetry.errors import SettingError
from berth.telemetry.traces.export_queue import Sink
from berth.telemetry.traces.otlp import OtlpExporter
from berth.telemetry.traces.otlp_encoder import SCOPE_NAME
from berth.telemetry.traces.spans import CLIENT, ERROR, EndedCycle, Span, spans_of

# Its encoder takes a millisecond for each, and the interpreter is shared with the scheduling loop.
BATCH_CYCLES = 8

SCOPE = InstrumentationScope(SCOPE_NAME)

_ENTRY_POINTS = "opentelemetry_traces_exporter"
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


class SdkExporter:
    """A sink in front of a standard exporter."""

    def __init__(self, exporter: SpanExporter, resource: Mapping[str, Any]) -> None:
        self._exporter = exporter
        self._resource = Resource.create(dict(resource))
        self._waiting: list[ReadableSpan] = []
        self._cycles = 0

    def add(self, cycle: EndedCycle) -> bool:
        """Make the SDK's spans of the cycle; enough are BATCH_CYCLES."""
        spans = spans_of(cycle, self._resource.attributes)
        self._waiting += [_readable(span, self._resource) for span in spans]
        self._cycles += 1
        return self._cycles >= BATCH_CYCLES

    def send(self) -> bool:
        """Hand the spans to the exporter, which retries as its settings say."""
        waiting, self._waiting, self._cycles = self._waiting, [], 0
        return self._exporter.export(waiting) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()


def sink(name: str, resource: Mapping[str, Any]) -> Sink:
    """The exporter of that name in OTEL_TRACES_EXPORTER; it reads its own OTEL_* variables.

    Raises: SettingError where none is installed under that name, or it refuses its settings.
    """
    wanted = _otlp_by_protocol() if name == "otlp" else name
    if wanted != _OTLP["grpc"]:
        return SdkExporter(_load(name, wanted), resource)
    try:
        return OtlpExporter(resource)
    except Exception as error:
        raise SettingError(f"OTEL_TRACES_EXPORTER: exporter {name!r}: {error}") from error


def _load(name: str, wanted: str) -> SpanExporter:
    found = next(iter(entry_points(group=_ENTRY_POINTS, name=wanted)), None)
    if found is None:
        raise SettingError(f"OTEL_TRACES_EXPORTER: unknown exporter {name!r}")
    try:
        exporter: SpanExporter = found.load()()
    except Exception as error:
        raise SettingError(f"OTEL_TRACES_EXPORTER: exporter {name!r}: {error}") from error
    return exporter


def _otlp_by_protocol() -> str:
    specific = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "").strip()
    protocol = specific or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip() or "grpc"
    if protocol not in _OTLP:
        raise SettingError(f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol!r} is neither grpc nor http/protobuf")
    return _OTLP[protocol]


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    trace_id = int(span.trace_id, 16)
    failed = span.status.code == ERROR
    return ReadableSpan(
        span.name,
        context=_context(trace_id, span.span_id),
        parent=_context(trace_id, span.parent_span_id) if span.parent_span_id else None,
        resource=resource,
        attributes=span.attributes,
        links=[Link(_context(int(link.trace_id, 16), link.span_id), link.attributes) for link in span.links],
        kind=SpanKind.CLIENT if span.kind == CLIENT else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.status.message) if failed else Status(StatusCode.UNSET),
        start_time=span.start_time_unix_nano,
        end_time=span.end_time_unix_nano,
        instrumentation_scope=SCOPE,
    )


def _context(trace_id: int, span_id: str) -> SpanContext:
    return SpanContext(trace_id, int(span_id, 16), is_remote=False, trace_flags=_SAMPLED)
