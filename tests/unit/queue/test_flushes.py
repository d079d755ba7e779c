"""Core 2.15: what time alone does."""

import pytest

from tests.unit.queue.kit import NODE_ADD, a_bench
from tests.unit.queue.test_in_flight import put


def test_backoff_ends_with_its_second():
    """2.4: rejected at .4 with one second of backoff, a pod is released when the second after is over."""
    bench = a_bench(now=1000.4)
    pod = put(bench, "error")
    assert bench.queue.next_flush_time() <= 1000.4
    bench.queue.flush()
    assert bench.queue.next_flush_time() == 1002.0
    bench.clock.seconds = 1001.99
    bench.queue.flush()
    assert bench.where(pod) == "error"
    bench.clock.seconds = 1002.0
    bench.queue.flush()

    assert bench.where(pod) == "active"
    assert bench.metrics.incoming["active", "BackoffComplete"] == 1


def test_the_normal_heap_is_flushed_first():
    """2.15: rejected pods are made ready before failed ones."""
    bench = a_bench()
    failed, rejected = bench.popped("failed"), bench.popped("rejected")
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(failed)
    bench.fail(rejected, "A")
    bench.clock.seconds += 10
    released = [r.pod.name for r in bench.queue._sub_queues.backoff.pop_completed(bench.clock.seconds)]

    assert released == ["rejected", "failed"]


def test_the_scan_stops_at_the_first_that_waits():
    """2.15: pods are released in the order of their expiry."""
    bench = a_bench()
    first, later = bench.popped("first"), bench.popped("later")
    bench.fail(first)
    bench.clock.seconds += 5
    bench.fail(later)
    bench.queue.flush()

    assert (bench.where(first.pod), bench.where(later.pod)) == ("active", "error")


@pytest.mark.parametrize(("waited", "place"), [(300.0, "pool"), (300.001, "active")])
def test_leftovers(waited, place):
    """11.3.9: after more than five minutes, not exactly five, a pod is retried."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record, "A")
    bench.clock.seconds += waited
    bench.queue.flush_unschedulable_leftovers()

    assert place == bench.where(record.pod)
    assert record.was_flushed_from_unschedulable == (place == "active")
    assert bench.metrics.incoming["active", "UnschedulableTimeout"] == (place == "active")


def test_leftovers_reach_pods_in_flight():
    """2.15: the wildcard event is recorded, but only if there was anything to flush."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record, "A")
    bench.popped("flying")
    bench.queue.flush_unschedulable_leftovers()
    assert not bench.queue._in_flight.events()
    bench.clock.seconds += 301
    bench.queue.flush_unschedulable_leftovers()

    assert [event.label for event in bench.queue._in_flight.events()] == ["UnschedulableTimeout"]


def test_leftovers_are_looked_for_every_30_seconds():
    """2.15: at once, and then every 30 seconds, without drifting."""
    bench = a_bench()
    assert bench.queue.next_flush_time() <= 1000.0
    bench.queue.flush()
    assert bench.queue.next_flush_time() == 1030.0
    bench.clock.seconds = 1095.0
    bench.queue.flush()

    assert bench.queue.next_flush_time() == 1120.0


def test_a_pod_out_of_the_pool_is_not_a_leftover():
    """2.15: what backs off is none of the leftover flush's business."""
    bench = a_bench()
    pod = put(bench, "error")
    bench.clock.seconds += 1000
    bench.queue.flush_unschedulable_leftovers()

    assert bench.where(pod) == "error"


def test_the_flag_is_cleared_by_the_next_return():
    """2.2: a flushed pod carries the flag through one attempt."""
    bench = a_bench()
    bench.fail(bench.popped(), "A")
    bench.clock.seconds += 301
    bench.queue.flush()
    record = bench.queue.pop()
    assert record.was_flushed_from_unschedulable
    bench.fail(record, "A")

    assert not record.was_flushed_from_unschedulable
