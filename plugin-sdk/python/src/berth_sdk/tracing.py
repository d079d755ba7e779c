"""Spans for the calls answered, as children of the scheduler's, where they are collected.

The scheduler sends its W3C context in the call's metadata. OTEL_* variables choose an OTLP collector,
BERTH_TRACE_FILE a file; without either a call costs nothing, and traces that the scheduler did not sample
are not written.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from uuid import uuid4

from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from berth_sdk.call_span import CallSpan, Recorder, Unsampled, parent_of
from berth_sdk.errors import TraceError
from berth_sdk.trace_file import FileSpanExporter

Metadata = Iterable[tuple[str, str | bytes]]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROPAGATOR = TraceContextTextMapPropagator()
_TRACEPARENT, _TRACESTATE = "traceparent", "tracestate"
_SAMPLER = "OTEL_TRACES_SAMPLER"
_SCOPE = "berth_sdk"


class Tracing:
    """Open spans for calls; made without exporters it opens none."""

    def __init__(self, name: str, version: str, exporters: Iterable[SpanExporter] = ()) -> None:
        self._provider: TracerProvider | None = None
        self._tracer: Tracer | None = None
        self._recorder: Recorder | None = None
        processors = [BatchSpanProcessor(exporter) for exporter in exporters]
        if processors:
            self._provider = _provider(name, version)
            for processor in processors:
                self._provider.add_span_processor(processor)
            self._tracer = self._provider.get_tracer(_SCOPE, version)
            if _SAMPLER not in os.environ:
                scope = InstrumentationScope(_SCOPE, version)
                ids = self._provider.id_generator
                self._recorder = Recorder(self._provider.resource, scope, ids, processors)
        self.on = self._tracer is not None
        """Whether there are spans at all."""

    @classmethod
    def from_environment(
        cls, name: str, version: str, environment: Mapping[str, str] = os.environ
    ) -> "Tracing":
        """Return what OTEL_* and BERTH_TRACE_FILE ask for.

        Raises: TraceError: it can't be had.
        """
        exporters: list[SpanExporter] = []
        if path := environment.get("BERTH_TRACE_FILE"):
            exporters.append(FileSpanExporter(path))
        wanted = environment.get("OTEL_TRACES_EXPORTER", "otlp") != "none"
        if wanted and any(environment.get(each) for each in _ENDPOINTS):
            exporters.append(_otlp(environment))
        return cls(name, version, exporters)

    def span(self, name: str, metadata: Metadata) -> AbstractContextManager[Span]:
        """Return the span of a call, current while it is entered."""
        if self._tracer is None:
            return nullcontext(INVALID_SPAN)
        carrier = {key: value for key, value in metadata if isinstance(value, str)}
        if self._recorder is not None and _TRACESTATE not in carrier:
            parent = parent_of(carrier.get(_TRACEPARENT, ""))
            if parent is not None and parent.trace_flags.sampled:
                return CallSpan(self._recorder, name, parent)
            if parent is not None:
                return Unsampled(self._recorder, parent)
        context = _PROPAGATOR.extract(carrier)
        return self._tracer.start_as_current_span(name, context, SpanKind.SERVER)

    def shutdown(self) -> None:
        """Write out what is pending."""
        if self._provider:
            self._provider.shutdown()


def _provider(name: str, version: str) -> TracerProvider:
    own: dict[str, AttributeValue] = {
        SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", name),
        SERVICE_VERSION: version,
    }
    resource = Resource({SERVICE_INSTANCE_ID: str(uuid4())}).merge(Resource.create(own))
    chosen = _SAMPLER in os.environ
    return TracerProvider(resource=resource, sampler=None if chosen else ParentBased(ALWAYS_OFF))


def _otlp(environment: Mapping[str, str]) -> SpanExporter:
    protocol = next((environment[each] for each in _PROTOCOLS if environment.get(each)), "grpc")
    if protocol != "grpc":
        raise TraceError(f"{_PROTOCOLS[1]}: {protocol!r} is not served here, grpc is")
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415 - 150 ms to import
        OTLPSpanExporter,
    )

    return OTLPSpanExporter()
