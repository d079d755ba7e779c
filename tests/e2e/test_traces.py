"""One trace for a pod, whoever wrote its spans: scheduler and sidecar, to a file and to a collector."""

import tempfile
from pathlib import Path

import pytest

from berth.telemetry.trace_file import read_trace_file
from tests.e2e.collector import collecting
from tests.e2e.running import bound, cluster, some_pods

pytestmark = pytest.mark.e2e

CALLS = {"gpu-share/FilterScore", "gpu-share/Reserve"}


@pytest.fixture
def collector():
    """A collector of this test's own."""
    with collecting() as found:
        yield found


@pytest.fixture
async def written(tmp_path, collector):
    """The trace file of a run that has ended; its spans went to the collector, too."""
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
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
