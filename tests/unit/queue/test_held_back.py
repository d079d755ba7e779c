"""Pods held back because their cycles went over budget: nothing brings them back before their time."""

import pytest

from berth.queue.requeueing.hint_questions import HintQuestion
from tests.unit.queue.kit import NODE_ADD, PROFILE, a_bench

HELD_SECONDS = 100


@pytest.fixture
def bench():
    return a_bench()


def hold(bench, name="p0", rejectors=("A",), pending=()):
    """A pod back from a cycle that went over budget."""
    record = bench.popped(name)
    record.held_until = bench.clock.seconds + HELD_SECONDS
    bench.fail(record, *rejectors, pending=pending)
    return record


def after(bench, seconds):
    bench.clock.seconds += seconds
    bench.queue.flush()
    return bench.pop_names()


def test_a_pod_that_failed_comes_back_after_its_time(bench):
    hold(bench, rejectors=())

    assert [] == after(bench, HELD_SECONDS - 1)
    assert ["p0"] == after(bench, 2)


def test_an_event_does_not_bring_it_back_sooner(bench):
    """The pod leaves the pool for the backoff queue, and rests there though nothing else is ready."""
    record = hold(bench)
    bench.queue.move_all(NODE_ADD, None, None)

    assert "resting" == bench.where(record.pod)
    assert [] == after(bench, HELD_SECONDS - 1)
    assert ["p0"] == after(bench, 2)


def test_an_event_that_a_pending_pod_waits_for_does_not(bench):
    """Usually it would skip the backoff."""
    record = hold(bench, rejectors=(), pending=("A",))
    bench.queue.move_all(NODE_ADD, None, None)

    assert "resting" == bench.where(record.pod)


def test_an_event_during_the_cycle_does_not(bench):
    record = bench.popped()
    record.held_until = bench.clock.seconds + HELD_SECONDS
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(record, pending=("A",))

    assert "resting" == bench.where(record.pod)


@pytest.mark.parametrize("moved", [False, True])
def test_no_plugin_activates_it(bench, moved):
    record = hold(bench)
    if moved:
        bench.queue.move_all(NODE_ADD, None, None)
    bench.queue.activate([record.pod])

    assert ("resting" if moved else "pool") == bench.where(record.pod)


def test_no_answer_of_a_sidecar_does(bench):
    record = hold(bench, rejectors=(), pending=("A",))
    bench.queue.move_all(NODE_ADD, None, None)
    bench.queue.hints_answered(
        [HintQuestion("A", PROFILE, NODE_ADD, None, None, [record], [record.attempts])]
    )

    assert "resting" == bench.where(record.pod)


def test_its_group_is_popped_without_it(bench):
    record = hold(bench)

    assert bench.queue.pop_specific(record.pod) is None
    assert "pool" == bench.where(record.pod)


def test_the_flush_of_leftovers_does_not(bench):
    record = hold(bench)
    record.held_until += 1000
    bench.clock.seconds += 400
    bench.queue.flush_unschedulable_leftovers()

    assert "resting" == bench.where(record.pod)


def test_after_its_time_an_event_makes_it_ready(bench):
    hold(bench)
    bench.clock.seconds += HELD_SECONDS + 1
    bench.queue.move_all(NODE_ADD, None, None)

    assert ["p0"] == bench.pop_names()


def test_other_pods_are_popped_meanwhile(bench):
    hold(bench, rejectors=())
    bench.add("other")

    assert ["other"] == bench.pop_names()


def test_the_usual_backoff_holds_where_it_is_longer():
    bench = a_bench(initial_backoff_seconds=500, max_backoff_seconds=500)
    hold(bench, rejectors=())

    assert [] == after(bench, HELD_SECONDS + 2)


def test_a_pod_that_has_to_wait_is_put_off_and_the_next_one_popped():
    bench = a_bench(wait_seconds=lambda pod, _ready: 2.5 if pod.namespace == "greedy" else 0.0)
    greedy = bench.add("first", namespace="greedy")
    bench.add("second")

    assert ["second"] == bench.pop_names()
    assert "error" == bench.where(greedy)
    assert 1 == bench.metrics.incoming["backoff", "NamespaceOverBudget"]


def test_who_has_to_wait_hears_which_pods_come_next():
    """The pods behind it, in the order of their turns."""
    heard = []

    def wait_seconds(pod, upcoming):
        heard.append([pod.name, *(each.name for each in upcoming(10))])
        return 0.0

    bench = a_bench(wait_seconds=wait_seconds)
    for name in ("first", "second", "third"):
        bench.add(name)
    bench.pop_names()

    assert [["first", "second", "third"], ["second", "third"], ["third"]] == heard


def test_a_pod_that_was_put_off_comes_back_by_itself():
    """It has had no attempt meanwhile, and is not put off twice for one reason."""
    waits = [2.5, 0.0]
    bench = a_bench(wait_seconds=lambda _pod, _ready: waits.pop(0))
    bench.add()

    assert bench.queue.pop() is None
    assert [] == after(bench, 1)
    bench.clock.seconds += 2
    bench.queue.flush()
    assert 1 == bench.queue.pop().attempts
