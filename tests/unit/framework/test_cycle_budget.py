"""The meter of a cycle: what it counts, when it gives others their turn, and how it ends work."""

import pytest

from berth.framework.attempts.cycle_budget import (
    READ_SECONDS,
    TURN_SECONDS,
    UNMETERED,
    CpuTime,
    CycleMeter,
    OverBudgetError,
)
from berth.framework.attempts.cycle_state import CycleState
from berth.testing.handles import ManualClock

LIMIT = 1.0


class Turn:
    """Awaited, it gives everything else its turn."""

    def __await__(self):
        yield "turn"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def meter(clock):
    return CycleMeter(LIMIT, CpuTime(clock), Turn)


def drive(meter, work, between=lambda: None):
    """What the timed work returns, and how often it stopped; `between` is what others do meanwhile."""
    steps, stops = meter.timed(work).__await__(), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, stops
        stops += 1
        between()


def test_cpu_of_others_does_not_count(meter, clock):
    """While the cycle waits, what runs meanwhile is not put to its account."""

    async def cycle():
        clock.seconds += 0.1
        await Turn()
        clock.seconds += 0.2

    def others():
        clock.seconds += 50

    drive(meter, cycle(), others)

    assert meter.used_seconds == pytest.approx(0.3)


def test_a_turn_is_due_after_some_work(meter, clock):
    """Short work goes on at once; others have their turn once it has added up."""
    due = []

    async def cycle():
        for _ in range(4):
            clock.seconds += TURN_SECONDS * 0.4
            due.append(meter.worked("Any"))

    drive(meter, cycle())

    assert [False, False, True, True] == due


def test_a_turn_that_was_given_counts_from_anew(meter, clock):
    async def cycle():
        for _ in range(12):
            clock.seconds += TURN_SECONDS * 0.51
            if meter.worked("Any"):
                await meter.breathe()

    assert (None, 6) == drive(meter, cycle())


class Counting(ManualClock):
    """A clock that counts how often it was asked for CPU."""

    def __init__(self):
        super().__init__()
        self.reads = 0

    def cpu(self):
        self.reads += 1
        return super().cpu()


def test_cpu_is_read_only_after_enough_time_has_passed():
    """The thread's CPU is dear to read, and never more than the time that passed."""
    clock = Counting()
    cpu = CpuTime(clock)

    async def cycle(meter):
        for _ in range(100):
            meter.worked("Any")

    for _ in range(10):
        meter = CycleMeter(LIMIT, cpu, Turn)
        drive(meter, cycle(meter))

    assert 1 == clock.reads


def test_a_quick_step_counts_for_as_long_as_it_took():
    clock = Counting()
    meter = CycleMeter(LIMIT, CpuTime(clock), Turn)

    async def cycle():
        clock.seconds += READ_SECONDS / 2

    drive(meter, cycle())

    assert READ_SECONDS / 2 == pytest.approx(meter.used_seconds)
    assert 1 == clock.reads


class Waiting(ManualClock):
    """A clock of a thread that others keep waiting."""

    def cpu(self):
        return 7.0


def test_others_that_kept_the_thread_waiting_are_not_counted():
    """Of a step that took long, CPU is counted, and it was last read shortly before."""
    clock = Waiting()
    meter = CycleMeter(LIMIT, CpuTime(clock), Turn)

    async def cycle():
        clock.seconds += 10.0

    drive(meter, cycle())

    assert 0.0 == meter.used_seconds


def test_work_past_the_budget_ends_with_an_error(meter, clock):
    """The error names the budget and who was at work."""

    async def cycle():
        clock.seconds += LIMIT + 0.1
        meter.worked("Slow")

    with pytest.raises(OverBudgetError, match="exceeded its budget of 1s of CPU in Slow"):
        drive(meter, cycle())

    assert "Slow" == meter.exceeded_in


def test_work_that_is_not_to_be_interrupted_gets_a_status(meter, clock):
    async def cycle():
        before = meter.verdict("Slow")
        clock.seconds += LIMIT + 0.1
        return before, meter.verdict("Slow")

    (before, after), _ = drive(meter, cycle())

    assert before.ok
    assert "scheduling cycle exceeded its budget" in after.message


def test_a_search_past_the_budget_ends_and_the_cycle_may_go_on(meter, clock):
    """No search goes on after that; the rest of the cycle has as much again, and no more."""
    answers = []

    async def cycle():
        answers.append(await meter.go_on("Searching"))
        clock.seconds += LIMIT + 0.1
        answers.append(await meter.go_on("Searching"))
        answers.append(await meter.go_on("Another"))
        clock.seconds += LIMIT / 2
        meter.worked("Rest")
        clock.seconds += LIMIT
        meter.worked("Rest")

    with pytest.raises(OverBudgetError):
        drive(meter, cycle())

    assert [True, False, False] == answers
    assert "Searching" == meter.exceeded_in


def test_a_search_gives_others_their_turn(meter, clock):
    async def cycle():
        for _ in range(10):
            clock.seconds += TURN_SECONDS * 1.01
            await meter.go_on("Searching")

    assert (None, 10) == drive(meter, cycle())


def test_what_is_thrown_into_the_cycle_reaches_it(meter):
    """Cancelling works as without a meter."""

    async def cycle():
        try:
            await Turn()
        except KeyError:
            return "caught"

    steps = meter.timed(cycle()).__await__()
    next(steps)

    with pytest.raises(StopIteration) as end:
        steps.throw(KeyError())

    assert "caught" == end.value.value


def test_a_cycle_that_is_closed_cleans_up(meter):
    closed = []

    async def cycle():
        try:
            await Turn()
        finally:
            closed.append(True)

    steps = meter.timed(cycle()).__await__()
    next(steps)
    steps.close()

    assert [True] == closed


def test_after_its_end_a_cycle_uses_nothing(meter, clock):
    """What is left of it to other tasks runs into no limit."""

    async def cycle():
        clock.seconds += 0.1

    drive(meter, cycle())
    clock.seconds += 100

    assert not meter.worked("Later")
    assert meter.used_seconds == pytest.approx(0.1)


def test_without_a_meter_nothing_is_due():
    assert CycleState().meter is UNMETERED
    assert not UNMETERED.worked("Any")


def test_simulations_use_the_same_meter(meter):
    assert CycleState(meter).clone().meter is meter
