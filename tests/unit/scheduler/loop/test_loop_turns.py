"""A loop seen from another thread: busy, hanging, or ready to answer."""

import asyncio

import pytest

from berth.scheduler.loop.loop_turns import LONGEST_TURN_SECONDS, LoopTurns
from berth.serving.errors import LoopBusyError


class Time:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
async def turns(time):
    return LoopTurns(asyncio.get_running_loop(), monotonic=time)


async def test_a_loop_that_came_round_is_not_busy(turns, time):
    """Once it has answered, time is no concern."""
    turns.look()
    await asyncio.sleep(0)
    time.now += LONGEST_TURN_SECONDS + 1

    assert (0.0, False, "") == (turns.busy_seconds(), turns.hangs(), turns.check())


async def test_a_turn_is_counted_from_the_first_look(turns, time):
    """Further looks at the same turn begin nothing anew."""
    turns.look()
    time.now += 3
    turns.look()
    time.now += 2

    assert 5.0 == turns.busy_seconds()
    assert ("the current turn has taken 5.0 s", "") == (turns.note(), turns.check())


@pytest.mark.parametrize(
    ("seconds", "hangs"), [(LONGEST_TURN_SECONDS, False), (LONGEST_TURN_SECONDS + 1, True)]
)
async def test_the_bound(turns, time, seconds, hangs):
    """A turn hangs once it has taken more than the bound."""
    turns.look()
    time.now += seconds

    assert hangs == turns.hangs()


async def test_the_check_names_the_time_and_the_bound(turns, time):
    """Both are there to be read."""
    turns.look()
    time.now += 61.5

    assert "the current turn has taken 61.5 s, more than 60 s" == turns.check()


async def test_a_loop_recovers(turns, time):
    """Coming round ends a turn, however long it took."""
    turns.look()
    time.now += 1000
    await asyncio.sleep(0)

    assert not turns.hangs()


async def test_work_is_done_by_the_loop(turns):
    """Asked by another thread, work runs in the loop that was asked."""
    loop = asyncio.get_running_loop()

    async def work():
        return asyncio.get_running_loop() is loop

    assert await asyncio.to_thread(lambda: asyncio.run(turns.ask(work)))


async def test_what_the_work_raises_is_raised(turns):
    """A TimeoutError of the work's own included: it is not the loop that was late."""

    async def work():
        raise TimeoutError("the plugin's")

    with pytest.raises(TimeoutError, match="the plugin's"):
        await turns.ask(work)


async def test_an_answer_that_does_not_come_in_time(time):
    """The work is cancelled, and the error says how busy the loop is."""
    turns = LoopTurns(asyncio.get_running_loop(), answer_seconds=0.01, monotonic=time)
    cancelled = asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(LoopBusyError, match=r"no answer .* within 0 s: the current turn has taken 0\.0 s"):
        await turns.ask(work)
    await cancelled.wait()
