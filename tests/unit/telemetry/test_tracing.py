"""Finished cycles reach files and collectors, and never hold the loop up."""

import gzip
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, HTTPServer

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc

from berth.telemetry.errors import SettingError, TraceFileError
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.telemetry.traces.export_queue import ExportQueue
from berth.telemetry.traces.otlp import OtlpExporter
from berth.telemetry.traces.sdk_exporter import SdkExporter
from berth.telemetry.traces.spans import EndedCycle, spans_of
from berth.telemetry.traces.trace_file import TraceFile, read_trace_file
from berth.telemetry.traces.tracing import Tracing, resource_from_environment
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.telemetry.records import TRACE_ID, rejected_record, scheduled_record

RESOURCE = {"service.name": "berth-test"}
AT_ONCE = b"\n\x02\x10\x01"
"""A google.rpc.RetryInfo that asks for a delay of a nanosecond."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_TRACES_SAMPLER", "OTEL_SDK_DISABLED", "BERTH_TRACE_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "berth-test")


class Collector(service_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self):
        self.resources = []
        self.away = 0

    def Export(self, request, context):  # noqa: N802 - the generated servicer's name
        if self.away:
            self.away -= 1
            context.set_trailing_metadata((("google.rpc.retryinfo-bin", AT_ONCE),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        self.resources.extend(request.resource_spans)
        return service.ExportTraceServiceResponse()

    @property
    def spans(self):
        return [s for each in self.resources for scope in each.scope_spans for s in scope.spans]


@pytest.fixture
def collector(monkeypatch):
    """A real OTLP collector, with the OTEL_* variables pointing at it."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    service_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=a%20b")
    yield collector
    server.stop(None).wait()


class Sink:
    """Keeps batches of so many cycles; waits for `open` before it takes one, and fails on demand."""

    def __init__(self, error=None, enough=1):
        self.batches = []
        self.waiting = []
        self.enough = enough
        self.refused = None
        self.open = threading.Event()
        self.error = error

    def add(self, cycle):
        if cycle.record is self.refused:
            raise ValueError("no span")
        self.waiting.append(cycle)
        return len(self.waiting) >= self.enough

    def send(self):
        assert self.open.wait(PATIENCE_SECONDS)
        batch, self.waiting = self.waiting, []
        if self.error:
            raise self.error
        self.batches.append(batch)
        return True

    def close(self):
        pass


def test_collector_receives_the_trace(collector):
    """OTLP by the standard variables alone: the collector has the spans, their ids and parents."""
    record = scheduled_record()
    tracing = Tracing.from_environment()
    tracing.on_record(record)
    assert tracing.close()

    expected = spans_of(EndedCycle(record, ""), {})
    assert [(s.trace_id, s.span_id, s.parent_span_id, s.name, s.kind) for s in expected] == [
        (s.trace_id.hex(), s.span_id.hex(), s.parent_span_id.hex(), s.name, s.kind) for s in collector.spans
    ]
    assert [(s.start_time_unix_nano, s.end_time_unix_nano) for s in expected] == [
        (s.start_time_unix_nano, s.end_time_unix_nano) for s in collector.spans
    ]
    root = {each.key: each.value for each in collector.spans[0].attributes}
    assert ("web-1", 10) == (root["k8s.pod.name"].string_value, root["berth.nodes"].int_value)


@pytest.mark.parametrize("record", [scheduled_record(earlier=bytes(range(24))), rejected_record()])
def test_collector_receives_what_the_sdk_sends(collector, record):
    """A collector decodes the same from us as from OpenTelemetry's exporter, resource and links too."""
    resource = resource_from_environment()
    for exporter in (OtlpExporter(resource), SdkExporter(OTLPSpanExporter(), resource)):
        exporter.add(EndedCycle(record, "no room"))
        assert exporter.send()
        exporter.close()
    ours, theirs = collector.resources
    for span in theirs.scope_spans[0].spans:
        if not span.status.code:
            # Unset, which is the same as not there.
            span.ClearField("status")

    assert theirs == ours


def test_collector_knows_who_sent_it(collector):
    """The resource has the service's name and what OTEL_RESOURCE_ATTRIBUTES adds."""
    tracing = Tracing.from_environment()
    tracing.on_record(scheduled_record())
    tracing.close()
    attributes = {each.key: each.value.string_value for each in collector.resources[0].resource.attributes}

    assert ("berth-test", "a b") == (attributes["service.name"], attributes["k8s.cluster.name"])


def test_ratio_of_0_writes_nothing(collector, monkeypatch):
    """However many attempts fail, a collector is sent nothing unless a rate asks for it."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    tracing = Tracing.from_environment()
    records = [rejected_record() for _ in range(1000)]
    for record in records:
        tracing.on_record(record)
    tracing.close()

    assert ([], 0, set()) == (collector.spans, tracing.exported, {each.traced for each in records} - {False})


def test_collector_that_was_away(collector):
    """The exporter connects again and sends the same batch once more."""
    collector.away = 2
    tracing = Tracing.from_environment()
    tracing.on_record(scheduled_record())
    assert tracing.close()

    assert (1, 0, 0) == (tracing.exported, tracing.failed, collector.away)
    assert len(spans_of(EndedCycle(scheduled_record(), ""), {})) == len(collector.spans)


def test_collector_gets_links(collector):
    """The attempt before is a link of the root, over OTLP too."""
    tracing = Tracing.from_environment()
    tracing.on_record(scheduled_record(earlier=bytes(range(24))))
    tracing.close()
    (link,) = collector.spans[0].links

    assert (bytes(range(16)), bytes(range(16, 24))) == (link.trace_id, link.span_id)


def test_collector_by_http(monkeypatch):
    """OTLP over HTTP with protobuf, where the variable asks for it."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            received.append((self.path, service.ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        tracing = Tracing.from_environment()
        tracing.on_record(scheduled_record())
        assert tracing.close()
        answering.join(PATIENCE_SECONDS)

    [(path, request)] = received
    assert "/v1/traces" == path
    assert "schedule pod" == request.resource_spans[0].scope_spans[0].spans[0].name


def test_file_holds_every_span(tmp_path):
    """What is read back from the file is what was made from the records."""
    path = tmp_path / "traces.jsonl"
    tracing = Tracing([TraceFile(path, RESOURCE)])
    records = [scheduled_record(), rejected_record()]
    for record in records:
        tracing.on_record(record)
    assert tracing.close()

    expected = [s for r in records for s in spans_of(EndedCycle(r, r.status.message), RESOURCE)]
    assert expected == list(read_trace_file(path))
    assert (2, 0, 0) == (tracing.exported, tracing.dropped, tracing.failed)


def test_file_of_the_environment(tmp_path, monkeypatch):
    """BERTH_TRACE_FILE alone turns the file on, as it does for sidecars."""
    monkeypatch.setenv("BERTH_TRACE_FILE", str(tmp_path / "t"))
    tracing = Tracing.from_environment()
    tracing.on_record(scheduled_record())
    tracing.close()

    assert {"berth-test"} == {s.resource["service.name"] for s in read_trace_file(tmp_path / "t")}


def test_nothing_is_on_unasked():
    """Without variables no cycle is exported, and sidecars are not asked to."""
    tracing = Tracing.from_environment()
    tracing.on_record(scheduled_record())

    assert (False, False) == (tracing.enabled, tracing.sampled(TRACE_ID))


def test_exporter_that_hangs_costs_traces_and_no_time():
    """A full queue drops and counts; nothing waits."""
    sink = Sink()
    queue = ExportQueue(sink, max_cycles=2)
    cycle = EndedCycle(scheduled_record(), "")
    for _ in range(20):
        queue.offer(cycle)
    dropped = queue.dropped
    sink.open.set()
    queue.close()

    assert dropped > 0
    assert 20 == queue.exported + queue.dropped


def test_batch_is_sent_when_it_is_enough():
    """What the sink deems enough is one batch; the rest is sent when nothing else is waiting."""
    sink = Sink(enough=3)
    sink.open.set()
    queue = ExportQueue(sink, interval_seconds=60)
    for _ in range(7):
        queue.offer(EndedCycle(scheduled_record(), ""))
    queue.close()

    assert ([3, 3, 1], 7) == ([len(batch) for batch in sink.batches], queue.exported)


def test_trace_that_cannot_be_encoded_is_the_only_one_lost():
    """The others of its batch are sent."""
    broken = scheduled_record()
    sink = Sink(enough=5)
    sink.open.set()
    sink.refused = broken
    queue = ExportQueue(sink, interval_seconds=60)
    for record in (scheduled_record(), broken, scheduled_record()):
        queue.offer(EndedCycle(record, ""))
    queue.close()

    assert (2, 1) == (queue.exported, queue.failed)


@reports(
    "traces-not-exported",
    metric="`berth_traces_total` by outcome",
    log="`traces not exported`, the first time",
)
def test_exporter_that_breaks_is_counted(caplog):
    """An exporter's exceptions lose its traces and nothing else, and only the first is logged."""
    sink = Sink(error=RuntimeError("boom"))
    sink.open.set()
    tracing = Tracing([sink])
    for _ in range(24):
        tracing.on_record(scheduled_record())

    assert tracing.close()
    assert (0, 24) == (tracing.exported, tracing.failed)
    metrics = SchedulerMetrics()
    metrics.watch_tracing(tracing)
    assert b'berth_traces_total{outcome="failed"} 24.0' in metrics.text()
    assert ["traces not exported sink=Sink err=boom"] == caplog.messages


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_EXPORTER", "pigeon"),
    ],
)
def test_setting_that_means_nothing(monkeypatch, name, value):
    """A variable with an unknown value is refused by name."""
    monkeypatch.setenv(name, value)

    with pytest.raises(SettingError, match=f"{name}.*{value}"):
        Tracing.from_environment()


def test_unknown_protocol(monkeypatch):
    """OTLP speaks gRPC or HTTP with protobuf."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "morse")

    with pytest.raises(SettingError, match="morse"):
        Tracing.from_environment()


def test_file_that_cannot_be_opened(tmp_path):
    """The path and the reason are in the error."""
    with pytest.raises(TraceFileError, match=r"t/x: No such file or directory"):
        Tracing.from_environment(tmp_path / "t" / "x")


def test_line_that_is_no_span(tmp_path):
    """A broken line is reported by its number."""
    path = tmp_path / "t"
    path.write_text("{}\n")

    with pytest.raises(TraceFileError, match=r"t:1: "):
        list(read_trace_file(path))


def test_service_name_wins(monkeypatch):
    """OTEL_SERVICE_NAME overrides a name among the resource's attributes."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,zone=z")
    resource = resource_from_environment()

    assert ("berth-test", "z") == (resource["service.name"], resource["zone"])
