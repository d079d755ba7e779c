"""One trace for a pod, with the spans of scheduler and sidecar, to a file and to a collector."""

import os
import tempfile
import time
from pathlib import Path
from uuid import UUID

import pytest
from opentelemetry.semconv._incubating.attributes import k8s_attributes, rpc_attributes, service_attributes
from opentelemetry.semconv.attributes.server_attributes import SERVER_ADDRESS

from berth.client.resources import PODS
from berth.telemetry.traces.sampling import FAILED_PER_MINUTE
from berth.telemetry.traces.trace_file import read_trace_file
from tests.e2e.collector import collecting
from tests.e2e.default_cluster import default_cluster
from tests.e2e.running import IMPOSSIBLE, bound, cluster, decided, some_pods
from tests.unit.scheduler_at_work import node

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
            await running.reach(lambda pods: all(map(decided, pods)), "one turned down")
            await running.create([large_node()])
            await running.reach(lambda pods: all(map(bound, pods)), "that one bound at its second attempt")
    return running.files.traces


def large_node():
    """Room for the pod that fits nowhere."""
    document = node("large")
    document["status"]["allocatable"]["cpu"] = document["status"]["capacity"]["cpu"] = "5000"
    return document


def assert_one_trace(spans):
    """Every call that the sidecar answered hangs below the scheduler's span of that call, in one trace."""
    ours = {span: (trace, name) for who, trace, span, _, name, *_ in spans if who == "berth-scheduler"}
    theirs = [span[:5] for span in spans if span[0] == "gpu-share"]
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
    assert sorted(in_file) == sorted(span[:5] for span in collector.spans)


async def test_spans_by_convention(written, collector):
    """Calls, resources, pods and attempts are found by OpenTelemetry's names, and no span is missing."""
    del written
    spans = {each.span: each for each in collector.spans}
    ours = [each for each in spans.values() if each.service == "berth-scheduler"]
    calls = [each for each in ours if each.name.startswith("gpu-share ")]
    answered = {each.parent for each in spans.values() if each.service == "gpu-share"}

    assert {each.span for each in calls} == answered & set(spans)
    for call in calls:
        method = f"berth.plugin.v1.SchedulingService/{call.name.split()[1]}"
        (answer,) = (each for each in spans.values() if each.parent == call.span)
        for span in (call, answer):
            assert ("OK", method) == (
                span.attributes[rpc_attributes.RPC_RESPONSE_STATUS_CODE],
                span.attributes[rpc_attributes.RPC_METHOD],
            )
        for span in (call, answer):
            assert "ttrpc" == span.attributes[rpc_attributes.RPC_SYSTEM_NAME]
        assert call.attributes[SERVER_ADDRESS].endswith(".sock.ttrpc")
        assert call.failure is None
    for span in spans.values():
        assert UUID(span.resource[service_attributes.SERVICE_INSTANCE_ID])
        assert not span.parent or span.parent in spans
    assert_attempts_are_linked(ours)


def assert_attempts_are_linked(spans):
    """The attempts of the pod that was tried again are found by its UID, each linked to the one before."""
    roots = [each for each in spans if not each.parent]
    (uid,) = {
        root.attributes[k8s_attributes.K8S_POD_UID]
        for root in roots
        if root.attributes[k8s_attributes.K8S_POD_NAME] == IMPOSSIBLE
    }
    attempts = sorted(
        (root for root in roots if root.attributes[k8s_attributes.K8S_POD_UID] == uid),
        key=lambda root: root.attributes["berth.attempt"],
    )

    assert ("unschedulable", "scheduled") == tuple(attempts[at].attributes["berth.result"] for at in (0, -1))
    assert [[], *([(root.trace, root.span)] for root in attempts[:-1])] == [root.links for root in attempts]


async def test_backlog_stays_under_the_rate(tmp_path, collector, monkeypatch):
    """However many pods fit nowhere, a minute has no more traces than the rate; no others are written."""
    rate, backlog = 7, int(os.environ.get("BERTH_BACKLOG", "1000"))
    attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}'
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_TRACES_SAMPLER": "traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0",
        FAILED_PER_MINUTE: str(rate),
    }.items():
        monkeypatch.setenv(name, value)
    begun = time.monotonic()
    async with default_cluster(tmp_path, [node("n0")]) as running:
        await running.create(PODS, [too_large(f"p{number}") for number in range(backlog)])
        counted = {}
        while counted.get(attempts, 0) < backlog:
            running.scheduler.check()
            counted = await running.metrics("scheduler_schedule_attempts_total", "berth_traces_total")
    minutes = 1 + (time.monotonic() - begun) // 60
    roots = [span for span in collector.spans if not span.parent]

    assert rate <= len(roots) <= rate * minutes
    assert {"unschedulable"} == {root.attributes["berth.result"] for root in roots}
    assert counted['berth_traces_total{outcome="over_rate"}'] >= backlog - rate * minutes


def too_large(name):
    """A pod that asks for more than a node has."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "5"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
