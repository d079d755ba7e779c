"""Core 2.12: a pod comes back from a failed attempt."""

import logging

import pytest

from berth.objects.pods.pod_spec import SchedulingGroup
from berth.queue.errors import AlreadyQueuedError
from tests.failures.reporting import reports
from tests.unit.queue.kit import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Rejector,
    a_bench,
    a_pod,
    queue_it,
    skip_it,
)


@pytest.mark.parametrize(
    ("place", "text"),
    [("pool", "unschedulable queue"), ("active", "the active queue"), ("normal", "the backoff queue")],
)
def test_a_pod_that_is_queued_already(place, text):
    """2.12.1: nothing happens to the pod that waits; the one that came back is done."""
    bench = a_bench()
    record = bench.popped()
    bench.add()
    other = bench.queue._sub_queues.active.get(record.pod.key)
    if place == "pool":
        bench.queue._sub_queues.active.remove(record.pod.key)
        bench.queue._sub_queues.park(other, "test")
    elif place == "normal":
        other.unschedulable_plugins = {"A"}
        bench.queue._sub_queues.active.remove(record.pod.key)
        bench.queue._sub_queues.backoff.put(other.pod.key, other)

    with pytest.raises(AlreadyQueuedError, match=f"^Pod default/p0 is already present in {text}$"):
        bench.queue.add_unschedulable_if_not_present(record)

    assert bench.queue.record("default", "p0") is other
    assert bench.where(record.pod) == place
    assert not list(bench.queue.in_flight())
    assert record.unschedulable_count == record.consecutive_errors_count == 0


def test_a_rejected_pod_waits_in_the_pool():
    """2.12.2-6: counted as rejected, timed anew, parked, and done."""
    bench = a_bench()
    record = bench.popped()
    record.backoff_expiration, record.consecutive_errors_count = 5.0, 3
    record.was_flushed_from_unschedulable = True
    bench.clock.seconds += 7
    bench.fail(record, "A", "B")

    assert bench.where(record.pod) == "pool"
    assert (record.unschedulable_count, record.consecutive_errors_count) == (1, 0)
    assert (record.timestamp, record.backoff_expiration) == (1007.0, None)
    assert not record.was_flushed_from_unschedulable
    assert bench.metrics.rejected == {("A", PROFILE): 1, ("B", PROFILE): 1}
    assert bench.metrics.incoming["unschedulable", "ScheduleAttemptFailure"] == 1
    assert not list(bench.queue.in_flight())


def test_a_failed_pod_backs_off():
    """2.12.2 and 2.12.5: without rejectors it counts as an error and backs off in the error heap."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record)

    assert bench.where(record.pod) == "error"
    assert (record.unschedulable_count, record.consecutive_errors_count) == (0, 1)
    assert bench.metrics.incoming["backoff", "ScheduleAttemptFailure"] == 1


@pytest.mark.parametrize(
    ("rejectors", "pending", "place"),
    [("A", "", "normal"), ("", "A", "active"), ("B", "", "pool"), ("A", "B", "normal"), ("C", "", "pool")],
)
def test_an_event_during_the_attempt(rejectors, pending, place):
    """2.12.5 and 11.3.2-4: what happened meanwhile is asked about now."""
    bench = a_bench([Rejector("A", {NODE_ADD: queue_it}), Rejector("B", {NODE_ADD: skip_it})])
    record = bench.popped()
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(record, *rejectors, pending=pending)

    assert place == bench.where(record.pod)


def test_an_event_before_the_attempt():
    """11.3.2: what happened before the pop is known to the attempt, and does not count."""
    bench = a_bench()
    bench.popped("other")
    bench.add()
    bench.queue.move_all(NODE_ADD, None, None)
    record = bench.queue.pop()
    bench.fail(record, "A")

    assert bench.where(record.pod) == "pool"


def test_immediately_wins_over_an_earlier_after_backoff():
    """2.12.5: with pending plugins all events are looked at for an Immediately."""
    plugins = [Rejector("A", {NODE_ADD: queue_it}), Rejector("B", {NODE_LABEL: queue_it})]
    bench = a_bench(plugins)
    record = bench.popped()
    bench.queue.move_all(NODE_ADD, None, None)
    bench.queue.move_all(NODE_LABEL, None, None)
    bench.fail(record, "A", pending=["B"])

    assert bench.where(record.pod) == "active"


def test_the_first_queue_ends_the_search():
    """2.12.5: without pending plugins the first AfterBackoff decides."""
    bench = a_bench([Rejector("A", {NODE_ADD: queue_it, NODE_LABEL: queue_it})])
    record = bench.popped()
    bench.queue.move_all(NODE_ADD, None, None)
    bench.queue.move_all(NODE_LABEL, None, None)
    bench.fail(record, "A")

    assert bench.metrics.hints == {("A", "NodeAdd", "Queue"): 1}


def test_without_backoff_it_is_active_at_once():
    """2.12: with a maximum backoff of zero AfterBackoff is activeQ."""
    bench = a_bench(max_backoff_seconds=0)
    record = bench.popped()
    bench.fail(record)

    assert bench.where(record.pod) == "active"


@reports("contradicted", log="`in flight Pod isn't found in the scheduling queue`")
def test_a_pod_that_was_done_before_its_return(caplog):
    """2.11: a rejected pod that is not in flight is retried after its backoff, and that is logged."""
    bench = a_bench()
    record = bench.popped()
    bench.queue.done(record.pod.uid)
    with caplog.at_level(logging.ERROR):
        bench.fail(record, "A")

    assert bench.where(record.pod) == "normal"
    assert "in flight Pod isn't found in the scheduling queue" in caplog.text


@pytest.mark.parametrize(("generic_workload", "place"), [(True, "resting"), (False, "pool")])
def test_members_of_a_group_are_not_parked(generic_workload, place):
    """2.12.5: with GenericWorkload a pod with a scheduling group is retried after its backoff."""
    bench = a_bench(generic_workload=generic_workload)
    record = bench.popped(scheduling_group=SchedulingGroup("g"))
    bench.fail(record, "A")

    assert place == bench.where(record.pod)


def test_an_update_during_the_attempt():
    """2.13.2: an update of the pod in flight is asked about when it returns, interest or none."""
    bench = a_bench()
    record = bench.popped()
    bench.update(record.pod, a_pod(labels={"a": "b"}))

    assert [event.label for event in bench.queue._in_flight.events()] == ["UnschedulablePodUpdatePodLabel"]
    assert record.pod.labels == {}
