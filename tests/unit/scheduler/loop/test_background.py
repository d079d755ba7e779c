"""The core's background work on an asyncio loop."""

import asyncio
from contextlib import suppress

import pytest

from berth.scheduler.loop.background import AsyncioBackground
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS


@pytest.fixture
async def background():
    async with asyncio.TaskGroup() as tasks:
        yield AsyncioBackground(tasks)


async def test_an_outcome_arrives_once(background):
    outcome = background.outcome()

    assert outcome.set("first")
    assert not outcome.set("second")
    assert "first" == await outcome


async def test_work_beside_work_that_ends_goes_on(background):
    """What ends well does not stop what waits for the same outcome: two PreBind plugins side by side."""
    stop, first_ended = background.outcome(), asyncio.Event()

    async def first():
        return "first"

    async def second():
        await first_ended.wait()
        return "second"

    slower = asyncio.create_task(background.unless(stop, second()))
    assert "first" == await background.unless(stop, first())
    first_ended.set()

    assert "second" == await slower
    assert stop.set("late")


async def test_work_is_cancelled_when_the_outcome_comes(background):
    """What it was is over then, and the task itself goes on."""
    stop, ended = background.outcome(), []

    async def work():
        stop.set("now")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    assert await background.unless(stop, work()) is None
    assert ["work"] == ended
    assert 0 == asyncio.current_task().cancelling()
    await asyncio.sleep(0)


async def test_work_that_ends_all_the_same_counts_as_cancelled(background):
    stop = background.outcome()

    async def work():
        stop.set("now")
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done"

    assert await background.unless(stop, work()) is None
    assert 0 == asyncio.current_task().cancelling()


async def test_who_cancels_the_task_cancels_it(background):
    stop, begun = background.outcome(), asyncio.Event()

    async def work():
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(background.unless(stop, work()))
    await begun.wait()
    task.cancel()
    stop.set("late")
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_outcome_that_comes_after_the_work_cancels_nothing(background):
    stop = background.outcome()

    async def work():
        stop.set("late")
        return "done"

    assert "done" == await background.unless(stop, work())
    await asyncio.sleep(0)
    assert 0 == asyncio.current_task().cancelling()


@reports("background-fails", log="`background work failed`, with its name and the cause")
async def test_work_that_fails_is_logged_and_harms_no_other(background, caplog):
    async def fails():
        raise ValueError("boom")

    background.spawn(fails(), "the work")
    await background.settle(10)

    assert "background work failed name=the work" in caplog.text


async def test_results_come_in_order(background):
    first_may_end = asyncio.Event()

    async def first():
        await first_may_end.wait()
        return 1

    async def second():
        first_may_end.set()
        return 2

    assert [1, 2] == await background.all_of([first(), second()])
    assert [2] == await background.all_of([second()])
    assert [] == await background.all_of([])


async def test_a_timer_that_was_cancelled_does_not_go_off(background):
    calls = []
    background.call_later(0, lambda: calls.append("kept"))
    background.call_later(0, lambda: calls.append("cancelled")).cancel()
    last = asyncio.Event()
    background.call_later(0, last.set)
    await last.wait()

    assert ["kept"] == calls


async def test_settling_cancels_what_does_not_end(background):
    ended = []

    async def waits():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def ends():
        ended.append("done")

    background.spawn(waits(), "waits")
    background.spawn(ends(), "ends")
    await background.settle(0.01)
    await asyncio.sleep(0)

    assert ["done", "cancelled"] == ended


async def test_settling_without_work_returns_at_once(background):
    async with asyncio.timeout(PATIENCE_SECONDS):
        await background.settle(1000)


@pytest.mark.filterwarnings("error")
async def test_work_that_comes_while_the_group_ends_is_not_begun():
    """Neither the work nor what logs its failure is left without having been awaited."""
    begun = []

    async def work():
        begun.append("work")

    async def spawns_while_cancelled(background):
        try:
            await asyncio.Event().wait()
        finally:
            background.spawn(work(), "too late")

    async def ends():
        async with asyncio.TaskGroup() as tasks:
            background = AsyncioBackground(tasks)
            background.spawn(spawns_while_cancelled(background), "spawns")
            await asyncio.sleep(0)
            raise ValueError

    with pytest.raises(ExceptionGroup):
        await ends()

    assert [] == begun


@pytest.mark.filterwarnings("error")
async def test_work_that_comes_after_the_group_ended_is_not_begun():
    """A timer may go off after everything else has ended."""
    begun = []

    async def work():
        begun.append("work")

    async with asyncio.TaskGroup() as tasks:
        background = AsyncioBackground(tasks)
    background.spawn(work(), "too late")

    assert [] == begun
