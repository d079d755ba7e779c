"""Core 2.4, 2.5 and 11.2: how long a pod backs off, and in which heap."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.pacing import Backoff
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.pools.backoff_queue import BackoffPolicy
from tests.unit.queue.kit import NODE_ADD, a_bench, a_pod


@pytest.mark.parametrize(
    ("initial", "maximum", "count", "duration"),
    [
        (1, 10, 1, 1),
        (1, 10, 2, 2),
        (1, 10, 3, 4),
        (1, 10, 4, 8),
        (1, 10, 5, 10),
        (1, 10, 100, 10),
        (3, 1000, 5, 48),
        (1, 32, 16, 32),
        (1, 2**31 - 1, 32, 2**31 - 1),
        (1, 2**63 - 1, 64, 2**63 - 1),
        (1, 32, 0, 0),
        (1, 0, 7, 0),
    ],
)
def test_duration(initial, maximum, count, duration):
    """11.2: the duration doubles with each failure up to the maximum, whatever the count."""
    assert duration == Backoff(initial, maximum).pause(count)


@given(st.integers(1, 100), st.integers(0, 1000), st.integers(1, 80))
def test_duration_is_bounded_and_grows(initial, extra, count):
    """2.4: one more failure never shortens the backoff, and the maximum bounds it."""
    maximum = initial + extra
    duration = Backoff(initial, maximum).pause(count)

    assert duration <= Backoff(initial, maximum).pause(count + 1) <= maximum
    assert duration == min(initial * 2 ** (count - 1), maximum)


def a_record(timestamp, *, errors=0, rejections=0):
    return QueuedPodInfo(a_pod(), timestamp, consecutive_errors_count=errors, unschedulable_count=rejections)


@pytest.mark.parametrize(("now", "waits"), [(1010.2, True), (1010.99, True), (1011.0, False), (1009.0, True)])
def test_window(now, waits):
    """11.2: an expiry of .7 is floored to its second, and that whole second still counts as waiting."""
    record = a_record(1009.7, rejections=1)

    assert BackoffPolicy().expiry(record) == 1010.0
    assert waits == BackoffPolicy().backing_off(record, now)


@pytest.mark.parametrize(("now", "waits"), [(1010.7, True), (1010.8, False), (1010.2, True)])
def test_no_window_without_the_gate(now, waits):
    """2.4: without SchedulerPopFromBackoffQ nothing is floored; equality still waits."""
    record = a_record(1009.5, rejections=1)
    record.timestamp = 1009.7

    assert waits == BackoffPolicy(windowed=False).backing_off(record, now)


def test_errors_count_apart_from_rejections():
    """2.4: after five rejections one error backs off for one second."""
    assert BackoffPolicy().expiry(a_record(1000.0, rejections=5, errors=1)) == 1001.0


@pytest.mark.parametrize(("maximum", "rejections"), [(0, 5), (10, 0)])
def test_no_backoff(maximum, rejections):
    """2.4: with a maximum of zero, or nothing counted, a pod never backs off."""
    record = a_record(0.0, rejections=rejections)
    backoff = BackoffPolicy(max_seconds=maximum)

    assert backoff.expiry(record) == -inf
    assert not backoff.backing_off(record, 0.0)


def test_expiry_is_kept():
    """2.2: the expiry is worked out once and holds until the pod returns from an attempt."""
    record = a_record(1000.0, rejections=1)
    BackoffPolicy().expiry(record)
    record.unschedulable_count = 5

    assert BackoffPolicy().expiry(record) == 1001.0


def test_which_heap():
    """2.5: a pod without a rejecting plugin waits in the error heap, any other in the normal one."""
    bench = a_bench()
    failed, rejected = bench.popped("failed"), bench.popped("rejected")
    bench.fail(failed)
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(rejected, "A")

    assert bench.where(failed.pod) == "error"
    assert bench.where(rejected.pod) == "normal"


def test_an_error_starts_its_own_series():
    """11.2: three rejections, then an error: one second, error heap; a rejection then goes on at four."""
    bench = a_bench(max_backoff_seconds=100)
    record = bench.popped()
    for _ in range(3):
        bench.fail(record, "A")
        bench.queue.activate([record.pod])
        record = bench.queue.pop()
    bench.fail(record)

    assert bench.where(record.pod) == "error"
    assert record.backoff_expiration == bench.clock.seconds + 1
    bench.clock.seconds += 2
    bench.queue.flush()
    record = bench.queue.pop()
    bench.fail(record, "A")
    assert (record.unschedulable_count, record.consecutive_errors_count) == (4, 0)
    assert BackoffPolicy(1, 100).expiry(record) == bench.clock.seconds + 8
