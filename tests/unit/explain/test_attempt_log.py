"""The last attempts at each pod."""

import pytest

from berth.explain.attempt_log import ATTEMPTS_PER_POD, AttemptLog, summary
from berth.framework.status import SUCCESS, failed, unschedulable
from berth.pod_groups.group_result import group_unschedulable
from berth.snapshot.bounded_cache import ENTRY_BYTES
from berth.testing.builders import make_pod
from tests.fakes import new_record


def attempt(name, number=1):
    record = new_record(make_pod(name))
    record.attempt = number
    return record


def test_a_summary_in_seconds_and_milliseconds():
    record = attempt("p")
    record.wall_offset_ns = 5_000_000_000
    record.enqueued_ns, record.dequeued_ns = 1_000_000_000, 3_000_000_000
    record.cycle_ended_ns, record.ended_ns = 3_002_000_000, 3_010_000_000
    record.status, record.result, record.traced = unschedulable("no room"), "unschedulable", True

    found = summary(record)

    assert (8.0, 2000.0, 2.0, 10.0) == (
        found.started_at,
        found.queued_milliseconds,
        found.cycle_milliseconds,
        found.total_milliseconds,
    )
    assert ("unschedulable", "no room", (b"t" * 16).hex()) == (found.result, found.message, found.trace_id)


def test_what_is_not_traced_has_no_trace_id():
    """An id that no collector knows is not shown."""
    assert "" == summary(attempt("p")).trace_id


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (None, ""),
        (SUCCESS, ""),
        (group_unschedulable(), "its group was refused"),
        (failed("boom"), "the attempt broke off"),
        (failed("boom").from_plugin("Quota"), "Quota failed"),
        (unschedulable("no").from_plugin("Quota"), "Quota refused"),
    ],
)
def test_why_no_node_was_evaluated(status, why):
    """An attempt whose search came to no node, or that was decided with its group's."""
    record = attempt("p")
    record.status = status

    assert why == summary(record).not_evaluated


def test_only_the_last_attempts_are_kept():
    log = AttemptLog()
    for number in range(ATTEMPTS_PER_POD + 2):
        log.on_record(attempt("p", number))

    assert list(range(2, ATTEMPTS_PER_POD + 2)) == [a.attempt for a in log.of("default-p")]


def test_the_pod_tried_longest_ago_is_forgotten_first():
    log = AttemptLog(max_pods=2)
    for name in ("a", "b", "a", "c"):
        log.on_record(attempt(name))

    assert (2, 0, 1) == tuple(len(log.of(f"default-{name}")) for name in "abc")


def test_messages_are_bounded_together():
    """Long ones cost others their place, the oldest first."""
    log = AttemptLog(max_characters=3 * ENTRY_BYTES + 35)
    for name in ("a", "b", "a", "c"):
        record = attempt(name)
        record.status = unschedulable("x" * 10)
        log.on_record(record)

    assert (2, 0, 1) == tuple(len(log.of(f"default-{name}")) for name in "abc")
