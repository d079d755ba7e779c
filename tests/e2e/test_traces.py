"""One trace for a pod, whoever wrote its spans: scheduler and sidecar, to a file and to a collector."""

import tempfile
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc

from berth.telemetry.trace_file import read_trace_file
from tests.e2e.running import bound, cluster, some_pods

pytestmark = pytest.mark.e2e

CALLS = {"gpu-share/FilterScore", "gpu-share/Reserve"}


class Collector(service_grpc.TraceServiceServicer):
    """An OTLP collector that keeps what it is sent, as (service, trace, span, parent, name)."""

    def __init__(self):
        self.spans = []

    def Export(self, request, _context):  # noqa: N802 - the generated servicer's name
        for each in request.resource_spans:
            name = next(a.value.string_value for a in each.resource.attributes if a.key == "service.name")
            for span in (span for scope in each.scope_spans for span in scope.spans):
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                self.spans.append((name, *ids, span.name))
        return service.ExportTraceServiceResponse()


@pytest.fixture
def collector():
    """A collector on a port of its own."""
    found = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service_grpc.add_TraceServiceServicer_to_server(found, server)
    found.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield found
    server.stop(None).wait()


@pytest.fixture
async def written(tmp_path, collector):
    """The trace file of a run that has ended; its spans went to the collector, too."""
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}"}
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        async with cluster(tmp_path, Path(sockets), nodes=60, **endpoint) as running:
            submitted = some_pods(gpu=20, others=10)
            await running.create(submitted)
            await running.reach(lambda pods: sum(map(bound, pods)) == len(submitted) - 1, "all but one bound")
    return running.files.traces


def assert_one_trace(spans):
    """Every call that the sidecar answered hangs below the scheduler's span of that call, in one trace."""
    ours = {span: (trace, name) for who, trace, span, _, name in spans if who == "berth-scheduler"}
    theirs = [span for span in spans if span[0] == "gpu-share"]
    assert {name for *_, name in theirs} >= CALLS
    for _, trace, _, parent, name in theirs:
        if name in CALLS:
            assert (trace, name.replace("/", " ")) == ours[parent]


async def test_one_trace(written, collector):
    """In the file and at the collector, the sidecar's spans are children of the scheduler's."""
    in_file = [
        (span.resource["service.name"], span.trace_id, span.span_id, span.parent_span_id, span.name)
        for span in read_trace_file(written)
    ]

    assert_one_trace(in_file)
    assert_one_trace(collector.spans)
    assert sorted(in_file) == sorted(collector.spans)
