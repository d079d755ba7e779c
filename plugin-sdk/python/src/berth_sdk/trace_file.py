"""Spans as lines of JSON in a file, for runs without a collector.

A line: {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
"attributes": {}, "resource": {}, "status": {"code", "message"}}, with hex ids, and numbers for kind and
status code, as in OTLP/JSON. Several processes may append to one file: each batch is one write.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import format_span_id, format_trace_id

from berth_sdk.errors import TraceError


class FileSpanExporter(SpanExporter):
    """Append spans to a file.

    Raises: TraceError: it can't be opened.
    """

    def __init__(self, path: str | Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise TraceError(f"trace file {path}: {error.strerror}") from error

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line a span."""
        data = b"".join(msgspec.json.encode(line(span)) + b"\n" for span in spans)
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file; later spans are not written."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def line(span: ReadableSpan) -> dict[str, Any]:
    """Return a span as a line's object."""
    context = span.get_span_context()
    assert context is not None
    return {
        "traceId": format_trace_id(context.trace_id),
        "spanId": format_span_id(context.span_id),
        "parentSpanId": format_span_id(span.parent.span_id) if span.parent else "",
        "name": span.name,
        "kind": span.kind.value + 1,
        "startTimeUnixNano": span.start_time,
        "endTimeUnixNano": span.end_time,
        "attributes": dict(span.attributes or {}),
        "resource": dict(span.resource.attributes),
        "status": {"code": span.status.status_code.value, "message": span.status.description or ""},
    }
