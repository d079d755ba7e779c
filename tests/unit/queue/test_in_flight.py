"""Core 2.10 and 2.11: popping, and what is remembered until a pod is done."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.queue.pools.in_flight import EVENTS_FORGOTTEN, MAX_EVENTS, WEIGHED_AT_ONCE, InFlight
from tests.failures.reporting import reports
from tests.unit.queue.kit import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    CountingMetrics,
    a_bench,
    a_pod,
)

P1, P2, E1, E2 = "P1", "P2", NODE_ADD, NODE_LABEL


def interleaved():
    """11.3.10: [P1, e1, P2, e2]."""
    flying = InFlight(CountingMetrics())
    flying.begin(P1)
    flying.record(E1, None, None)
    flying.begin(P2)
    flying.record(E2, None, None)
    return flying


def events_for(flying, uid):
    return [entry.event for entry in flying.events_for(uid)]


def test_done_keeps_what_others_need():
    """11.3.10: events go once no marker stands before them."""
    flying = interleaved()
    assert events_for(flying, P1) == [E1, E2]
    assert events_for(flying, P2) == [E2]
    flying.done(P2)
    assert flying.events() == [E1, E2]
    flying.done(P1)
    assert flying.events() == []

    flying = interleaved()
    flying.done(P1)
    assert flying.events() == [E2]


def test_done_twice_is_done_once():
    """2.11: Done is idempotent, in the counts, too."""
    flying = interleaved()
    flying.done(P1)
    flying.done(P1)

    assert flying._metrics.in_flight == {"PodPopped": 1, E1.label: 0, E2.label: 1}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, 3)),
        st.tuples(st.just("done"), st.integers(0, 3)),
        st.tuples(st.just("event"), st.sampled_from([E1, E2])),
    )
)


@given(STEPS)
def test_as_one_list(steps):
    """2.11: it behaves as one list of markers and events."""
    flying, model = InFlight(CountingMetrics()), []
    for kind, what in steps:
        if kind == "begin" and what not in model:
            flying.begin(what)
            model.append(what)
        elif kind == "event":
            flying.record(what, None, None)
            if any(isinstance(entry, int) for entry in model):
                model.append(what)
        elif kind == "done":
            flying.done(what)
            if what in model:
                model.remove(what)
            while model and not isinstance(model[0], int):
                model.pop(0)
        assert flying.events() == [entry for entry in model if not isinstance(entry, int)]
        for uid in range(4):
            missed = flying.events_for(uid)
            if uid not in model:
                assert missed is None
            else:
                after = model[model.index(uid) + 1 :]
                assert [m.event for m in missed] == [entry for entry in after if not isinstance(entry, int)]


def test_pop_prefers_active_to_backoff():
    """2.10.1: activeQ first, then the normal backoff heap before its time, the error heap never."""
    bench = a_bench()
    failed, rejected = bench.popped("failed"), bench.popped("rejected")
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(failed)
    bench.fail(rejected, "A")
    bench.add("new")

    assert bench.pop_names() == ["new", "rejected"]
    assert not bench.queue.ready()
    assert bench.metrics.incoming["active", "PopFromBackoffQ"] == 1


def test_no_pop_from_backoff_without_the_gate():
    """2.10.1: without SchedulerPopFromBackoffQ a pod backs off to the end."""
    bench = a_bench(pop_from_backoff=False)
    rejected = bench.popped()
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(rejected, "A")

    assert (bench.where(rejected.pod), bench.queue.ready()) == ("normal", False)
    assert bench.pop_names() == []


def test_pop_counts():
    """2.10.3-7: an attempt and a cycle more, a marker, and its rejectors count it no longer."""
    bench = a_bench()
    bench.pooled()
    assert bench.metrics.rejected["A", PROFILE] == 1
    bench.queue.move_all(NODE_ADD, None, None)
    record = bench.queue.pop()

    assert (record.attempts, bench.queue.scheduling_cycle) == (2, 2)
    assert bench.metrics.rejected["A", PROFILE] == 0
    assert bench.metrics.in_flight["PodPopped"] == 1
    assert record.unschedulable_plugins == {"A"}


@reports("contradicted", log="`the same pod is tracked in multiple places in the scheduler`")
def test_a_pod_is_not_popped_twice(caplog):
    """2.10.4: a pod that is in flight already is dropped with an error, and the next one is popped."""
    bench = a_bench()
    flying = bench.popped("p0", uid="same")
    bench.add("p0", uid="same", priority=9)
    bench.add("next")
    with caplog.at_level(logging.ERROR):
        assert bench.pop_names() == ["next"]

    assert "the same pod is tracked in multiple places in the scheduler" in caplog.text
    assert list(bench.queue.in_flight()) == [flying.pod.uid, "default-next"]


def test_pop_of_an_empty_queue():
    """2.10.1: there is nothing to pop, closed or not; what is left after the end is still popped."""
    bench = a_bench()
    assert bench.queue.pop() is None
    bench.add("left")
    bench.queue.close()

    assert bench.queue.closed
    assert bench.pop_names() == ["left"]


def test_close_ends_all_flights_and_wakes():
    """2.13: Close is Done for every pod in flight and wakes pops that wait."""
    bench = a_bench()
    bench.popped()
    bench.woken.clear()
    bench.queue.close()

    assert not list(bench.queue.in_flight())
    assert bench.woken


@pytest.mark.parametrize("place", ["active", "normal", "error", "pool"])
def test_pop_specific(place):
    """2.13: that very pod is taken from wherever it waits, and is in flight then."""
    bench = a_bench()
    pod = put(bench, place)
    bench.add("other", priority=100)
    record = bench.queue.pop_specific(pod)

    assert (record.pod, bench.where(pod)) == (pod, "in flight")
    assert bench.pop_names() == ["other"]


def test_pop_specific_leaves_others():
    """2.13: a pod that is gated, in flight or unknown is not taken."""
    bench = a_bench()
    gated = bench.add("gated", gates=["Gates"])
    flying = bench.popped("flying")

    for pod in (gated, flying.pod, a_pod("unknown")):
        assert bench.queue.pop_specific(pod) is None


def put(bench, place):
    """A pod in that place."""
    if place == "active":
        return bench.add()
    record = bench.popped()
    if place == "normal":
        bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(record, *([] if place == "error" else ["A"]))
    assert place == bench.where(record.pod)
    return record.pod


def test_more_events_than_are_kept_stand_for_anything():
    """A pod that missed a forgotten event is shown one that stands for it; younger pods are not."""
    flying = InFlight(CountingMetrics())
    flying.begin(P1)
    for _ in range(MAX_EVENTS + WEIGHED_AT_ONCE):
        flying.record(E1, None, None)
    flying.begin(P2)
    flying.record(E2, None, None)

    missed = events_for(flying, P1)
    assert missed[0] == EVENTS_FORGOTTEN
    assert missed[-1] == E2
    assert MAX_EVENTS // 4 < len(missed) <= MAX_EVENTS
    assert events_for(flying, P2) == [E2]

    flying.done(P1)
    assert flying.events() == [E2]
    flying.done(P2)
    flying.begin(P1)
    assert events_for(flying, P1) == []
