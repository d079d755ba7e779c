"""The concurrency of a recorded core does what the event loop's does, a step at a time."""

import asyncio

import pytest

from berth.recordings.core.tasks import Tasks


class Pace:
    """Steps in the order in which tasks became ready."""

    def __init__(self):
        self.waiting = []
        self.tasks = Tasks(self)

    def ready(self, task):
        self.waiting.append(task)

    def later(self, number, seconds, call):
        raise NotImplementedError

    def run(self, work):
        """What becomes of the work once nothing is ready any more."""
        task = self.tasks.start(work, "work")
        self.waiting.append(task)
        self.settle()
        return task

    def settle(self):
        while self.waiting:
            self.tasks.step(self.waiting.pop(0))


@pytest.fixture
def pace():
    return Pace()


async def value_of(promise, found=None):
    try:
        return await promise
    except asyncio.CancelledError:
        found.append("cancelled")
        raise


def test_work_that_ends_first_gives_its_result(pace):
    async def work():
        return 3

    assert pace.run(pace.tasks.unless(pace.tasks.outcome(), work())).outcome() == 3


def test_work_is_cancelled_where_the_outcome_comes_first(pace):
    stop, never, found = pace.tasks.outcome(), pace.tasks.outcome(), []
    task = pace.run(pace.tasks.unless(stop, value_of(never, found)))
    stop.set(None)
    pace.settle()
    assert task.outcome() is None
    assert found == ["cancelled"]
    assert not pace.tasks.alive


def test_what_work_raises_is_raised(pace):
    async def work():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        pace.run(pace.tasks.unless(pace.tasks.outcome(), work())).outcome()


def test_all_of_gives_results_in_order(pace):
    promises = [pace.tasks.outcome() for _ in range(3)]
    task = pace.run(pace.tasks.all_of([value_of(promise) for promise in promises]))
    for number in (2, 0, 1):
        promises[number].set(number)
        pace.settle()
    assert task.outcome() == [0, 1, 2]


def test_all_of_nothing_is_nothing(pace):
    assert pace.run(pace.tasks.all_of([])).outcome() == []


def test_the_first_failure_of_all_is_raised_at_once(pace):
    never = pace.tasks.outcome()

    async def fails():
        raise ValueError("first")

    task = pace.run(pace.tasks.all_of([value_of(never, []), fails()]))
    with pytest.raises(ValueError, match="first"):
        task.outcome()
    assert len(pace.tasks.alive) == 1
    never.set(None)
    pace.settle()
    assert not pace.tasks.alive


def test_a_breath_lets_others_go_first(pace):
    order = []

    async def breathing():
        order.append("before")
        await pace.tasks.breathe()
        order.append("after")

    async def other():
        order.append("other")

    async def both():
        await pace.tasks.all_of([breathing(), other()])

    pace.run(both())
    assert order == ["before", "other", "after"]


def test_a_task_that_was_cancelled_is_not_woken_by_what_it_waited_for(pace):
    stop, late, found = pace.tasks.outcome(), pace.tasks.outcome(), []
    pace.run(pace.tasks.unless(stop, value_of(late, found)))
    stop.set(None)
    late.set("too late")
    pace.settle()
    assert found == ["cancelled"]
    assert not pace.tasks.alive


def test_a_failure_in_the_background_is_logged(pace, caplog):
    async def fails():
        raise ValueError("unheard")

    pace.tasks.spawn(fails(), "failing")
    pace.settle()
    assert "background work failed name=failing" in caplog.text


def test_the_first_value_of_a_promise_counts(pace):
    promise = pace.tasks.outcome()
    assert promise.set(1)
    assert not promise.set(2)
    assert pace.run(value_of(promise)).outcome() == 1


def test_at_the_end_nothing_is_left_alive(pace):
    pace.run(value_of(pace.tasks.outcome(), []))
    pace.tasks.close()
    assert not pace.tasks.alive
