"""OTLP over gRPC: the standard exporter, with a shorter way to what it sends.

The exporter's settings, connection and retries are OpenTelemetry's. Its encoder takes many times as long as
ours (otlp_encoder.py), and the scheduling loop would wait for it, as both share the interpreter:
docs/decisions/0035-otlp-encoder.md has the figures.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult

from berth.telemetry.traces.otlp_encoder import Envelope, attempt_bytes
from berth.telemetry.traces.spans import EndedCycle

# Of a hundred attempts or so. A collector refuses messages of more than 4 MiB unless it is set up otherwise.
BATCH_BYTES = 512 * 1024

_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Batch(NamedTuple):
    """A request as bytes, and how many spans are in it."""

    request: bytes
    spans: int


class OtlpExporter:
    """A sink that sends spans to an OTLP collector over gRPC, by the OTEL_EXPORTER_OTLP_* variables."""

    def __init__(self, resource: Mapping[str, Any]) -> None:
        self._exporter = _Exporter()
        self._envelope = Envelope(Resource.create(dict(resource)).attributes)
        self._waiting: list[bytes] = []
        self._size = self._spans = 0

    def add(self, cycle: EndedCycle) -> bool:
        """Encode the cycle; enough are BATCH_BYTES."""
        attempt = attempt_bytes(cycle)
        self._waiting.append(attempt)
        self._size += len(attempt)
        # The root and the wait in the queue have no interval.
        self._spans += 2 + len(cycle.record.intervals)
        return self._size >= BATCH_BYTES

    def send(self) -> bool:
        """Send what was added; the exporter tries again as its settings say."""
        batch = Batch(self._envelope.request(self._waiting), self._spans)
        self._waiting, self._size, self._spans = [], 0, 0
        return self._exporter.send(batch) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


class _Exporter(OTLPSpanExporter):
    """OpenTelemetry's, for requests that are encoded already."""

    def __init__(self) -> None:
        super().__init__()
        # It makes another of these where it connects again.
        self._stub: Any = _Client
        self._client: Any = _Client(self._channel)

    def send(self, batch: Any) -> SpanExportResult:
        """Export it."""
        return self._export(batch)

    def _translate_data(self, data: Any) -> Any:
        return data.request

    def _count_data(self, data: Any) -> int:
        return int(data.spans)


class _Client:
    """The collector's service, called with bytes."""

    def __init__(self, channel: Any) -> None:
        self.Export = channel.unary_unary(
            _EXPORT, response_deserializer=ExportTraceServiceResponse.FromString
        )
