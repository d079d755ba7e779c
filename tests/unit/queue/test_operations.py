"""Core 2.13: Add, Update, Delete, Activate, PendingPods."""

import pytest

from berth.framework.cluster_event import FORCE_ACTIVATE
from berth.objects.taint import Toleration
from tests.unit.queue.kit import (
    GATES_GONE,
    NODE_ADD,
    POD_LABEL,
    PROFILE,
    Gates,
    Rejector,
    a_bench,
    a_pod,
    queue_it,
    skip_it,
)
from tests.unit.queue.test_in_flight import put


def test_add_makes_a_record():
    """2.13: a new record has the time and nothing else."""
    bench = a_bench()
    bench.add()
    record = bench.queue.record("default", "p0")

    assert (record.timestamp, record.attempts) == (1000.0, 0)
    assert not record.rejectors


@pytest.mark.parametrize("place", ["active", "normal", "error", "pool"])
def test_update_replaces_the_pod_where_it_waits(place):
    """2.13.3-5: the pod is replaced, the place and the time are not."""
    bench = a_bench()
    old = put(bench, place)
    record = bench.queue.record("default", "p0")
    timestamp = record.timestamp
    new = a_pod(labels={"v": "2"})
    bench.clock.seconds += 0.5
    bench.update(old, new)

    assert place == bench.where(new)
    assert bench.queue.record("default", "p0") is record
    assert (record.pod, record.timestamp) == (new, timestamp)


def test_update_restores_the_order():
    """2.13.3: a pod whose priority rose is popped earlier."""
    bench = a_bench()
    first, second = bench.add("first"), bench.add("second")
    bench.update(second, a_pod("second", priority=1))

    assert bench.pop_names() == ["second", first.name]


def test_update_restores_the_order_of_backoff():
    """2.13.4: within the same second of backoffQ the new priority counts."""
    bench = a_bench()
    records = [bench.popped(name) for name in ("first", "second")]
    bench.queue.move_all(NODE_ADD, None, None)
    for record in records:
        bench.fail(record, "A")
    bench.update(records[1].pod, a_pod("second", priority=1))

    assert bench.pop_names() == ["second", "first"]


def test_an_update_does_not_pull_out_of_backoff():
    """2.13.4 and 11.3.11: a pod that backs off stays, whatever its update says."""
    bench = a_bench([Rejector("A", {NODE_ADD: queue_it, POD_LABEL: queue_it})])
    old = put(bench, "normal")
    bench.clock.seconds += 60
    bench.update(old, a_pod(labels={"a": "b"}))

    assert bench.where(old) == "normal"


@pytest.mark.parametrize(("hint", "place"), [(queue_it, "active"), (skip_it, "pool")])
def test_an_update_moves_a_pod_out_of_the_pool(hint, place):
    """2.13.5: the pod's own change is an event for it."""
    bench = a_bench([Rejector("A", {POD_LABEL: hint})])
    old = bench.pooled().pod
    bench.update(old, a_pod(labels={"a": "b"}))

    assert place == bench.where(old)


def test_an_update_stops_at_the_first_move():
    """2.13.5: once the pod is queued its other changes are not asked about."""
    bench = a_bench([Rejector("A", {POD_LABEL: queue_it, GATES_GONE: queue_it})])
    old = bench.pooled(gates=["x"]).pod
    bench.update(old, a_pod(labels={"a": "b"}))

    assert bench.metrics.hints == {("A", "UnschedulablePodUpdatePodLabel", "Queue"): 1}
    assert bench.metrics.incoming["active", "UnschedulablePodUpdatePodLabel"] == 1


def test_an_update_goes_on_after_a_skip():
    """2.13.5: a change that does not help is followed by the next one."""
    bench = a_bench([Rejector("A", {POD_LABEL: skip_it, GATES_GONE: queue_it})])
    old = bench.pooled(gates=["x"]).pod
    bench.update(old, a_pod(labels={"a": "b"}, tolerations=(Toleration("a"),)))

    assert bench.where(old) == "active"


def test_the_last_gate_opens():
    """2.13.5 and 2.6: removing the gates lets a gated pod in, under the event's label."""
    bench = a_bench()
    old = bench.add(gates=["Gates"])
    bench.update(old, a_pod())

    assert bench.where(old) == "active"
    assert bench.metrics.incoming["active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"] == 1


def test_a_gate_of_many_keeps_the_pod():
    """2.13.5: a hint may say Queue and the gate still say no; the pod does not arrive anew."""
    gates = Gates(events=[GATES_GONE, POD_LABEL])
    bench = a_bench([gates])
    old = bench.add(gates=["Gates"])
    bench.update(old, a_pod(gates=["Gates"], labels={"a": "b"}))

    assert (bench.where(old), gates.asked) == ("pool", 2)
    assert bench.metrics.incoming == {("unschedulable", "UnschedulablePodAdd"): 1}


def test_update_of_an_unknown_pod():
    """2.13.6: a pod that waits nowhere is taken in."""
    bench = a_bench()
    bench.update(a_pod(), a_pod(labels={"a": "b"}))
    assert bench.metrics.incoming == {("active", "UnschedulablePodUpdate"): 1}

    bench.queue.update(None, a_pod("fresh"))
    assert bench.pop_names() == ["p0", "fresh"]


@pytest.mark.parametrize("place", ["active", "normal", "error", "pool"])
def test_delete(place):
    """2.13: the pod is gone from wherever it waits, its nomination and its rejections, too."""
    bench = a_bench()
    pod = put(bench, place)
    bench.queue.delete(pod)

    assert bench.where(pod) == "nowhere"
    assert bench.metrics.rejected["A", PROFILE] == 0
    assert bench.queue.sizes() == (0, 0, 0, 0)


def test_delete_of_a_pod_in_flight():
    """2.13: it stays in flight."""
    bench = a_bench()
    record = bench.popped()
    bench.queue.delete(record.pod)

    assert bench.where(record.pod) == "in flight"


@pytest.mark.parametrize("place", ["active", "normal", "error", "pool"])
def test_activate(place):
    """2.13: a pod becomes ready from anywhere, its backoff notwithstanding."""
    bench = a_bench()
    pod = put(bench, place)
    bench.woken.clear()
    bench.queue.activate([pod, a_pod("unknown")])

    assert bench.where(pod) == "active"
    assert (place != "active") == bool(bench.woken)
    assert bench.metrics.incoming["active", "ForceActivate"] == (place != "active")


def test_activate_in_flight():
    """2.13 and 11.3.6-7: it is recorded for that pod, which backs off if it fails; others stay put."""
    bench = a_bench()
    meant, other = bench.popped("meant"), bench.popped("other")
    bench.queue.activate([meant.pod])
    assert bench.queue._in_flight.events() == [FORCE_ACTIVATE]
    bench.fail(meant, "A")
    bench.fail(other, "A")

    assert (bench.where(meant.pod), bench.where(other.pod)) == ("normal", "pool")


def test_pending_pods():
    """2.13: all that wait, and how many where."""
    bench = a_bench()
    for place in ("pool", "error", "active"):
        put_as(bench, place)
    bench.add("gated", gates=["Gates"])
    pods, summary = bench.queue.pending_pods()

    assert {pod.name for pod in pods} == {"active", "error", "pool", "gated"}
    assert summary == "activeQ:1; backoffQ:1; unschedulablePods:2"
    assert bench.queue.sizes() == (1, 1, 1, 1)


def put_as(bench, place):
    if place == "active":
        bench.add("active")
    else:
        bench.fail(bench.popped(place), *(["A"] if place == "pool" else []))
