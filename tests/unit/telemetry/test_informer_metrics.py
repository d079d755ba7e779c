"""Mirrors of kinds, by client-go's names for informers."""

import pytest

from berth.client.resources import NODES, POD_GROUPS
from berth.client.watching.handling import BOUNDS, Handling
from berth.telemetry.metrics.informer_metrics import Mirrored
from berth.telemetry.metrics.registry import SchedulerMetrics
from tests.unit.telemetry.test_metrics import sample, series

LATENCY = "informer_processing_latency_seconds"
VERSION = "informer_store_resource_version"
OF_NODES = {"name": "kube-scheduler", "group": "", "version": "v1", "resource": "nodes"}


class Time:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


def watching(handling, version="7", kind=NODES):
    """Metrics of a mirror at that version."""
    metrics = SchedulerMetrics()
    metrics.informers.watch([Mirrored(kind, handling, lambda: version)], BOUNDS)
    return metrics


def test_what_is_handled_and_what_waits(time):
    """Of three events one took 3 ms, one waited out a pause and took 20 ms, and one is left."""
    handling = Handling(time)
    handling.begin(3)
    time.now = 0.003
    handling.done()
    time.now = 5.0
    handling.go_on()
    time.now = 5.02
    handling.done()
    metrics = watching(handling)

    assert 1 == sample(metrics, "informer_queued_items", **OF_NODES)
    buckets = [
        sample(metrics, f"{LATENCY}_bucket", le=le, **OF_NODES) for le in ("0.001", "0.005", "0.025", "+Inf")
    ]
    assert [0, 1, 2, 2] == buckets
    assert 0.023 == pytest.approx(sample(metrics, f"{LATENCY}_sum", **OF_NODES))


@pytest.mark.parametrize(
    ("version", "shown"),
    [("7", 7), ("1234567890123456789", 567890123456789), ("", None), ("opaque", None)],
)
def test_the_version_of_a_mirror(time, version, shown):
    """Its last 15 digits; nothing before the first list, or where it is no number."""
    assert shown == sample(watching(Handling(time), version), VERSION, **OF_NODES)


def test_a_kind_of_a_group(time):
    """The labels are those of its resource."""
    metrics = watching(Handling(time), kind=POD_GROUPS)

    assert [("scheduling.k8s.io", "kube-scheduler", "podgroups", POD_GROUPS.version)] == list(
        series(metrics, VERSION)
    )


def test_they_start_afresh(time):
    """DELETE /metrics sets the histogram back; what waits goes on waiting."""
    handling = Handling(time)
    handling.begin(2)
    handling.done()
    metrics = watching(handling)
    metrics.reset()

    assert 0 == sample(metrics, f"{LATENCY}_count", **OF_NODES)
    assert 1 == sample(metrics, "informer_queued_items", **OF_NODES)
