"""What is not of the core leaves no trace on its tape."""

import asyncio
import random

import pytest

from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.core_ports import CorePorts
from berth.recordings.core.recorder import CoreRecorder
from berth.scheduler.loop.background import AsyncioBackground
from tests.suite import PATIENCE_SECONDS

WRITERS = dict.fromkeys(("pods", "volumes", "claims", "pod_groups"))


@pytest.fixture
async def recorded():
    """The ports of a recorded core, and its tape."""
    spans = []
    async with asyncio.TaskGroup() as group:
        background, chance = AsyncioBackground(group), random.Random(1)
        real = CorePorts(**WRITERS, background=background, clock=SYSTEM_CLOCK, chance=chance)
        recorder = CoreRecorder(real, seed=1, sink=spans.append)
        yield recorder.ports, spans
        recorder.close()


async def three():
    await asyncio.sleep(0)
    return 3


async def test_work_outside_of_spans_runs_on_the_event_loop(recorded):
    (around, spans), done = recorded, []
    background = around.background
    await background.breathe()
    assert await background.all_of([three(), three()]) == [3, 3]
    never = background.outcome()
    assert await background.unless(never, three()) == 3

    async def work():
        done.append(await three())

    over = asyncio.Event()
    background.spawn(work(), "work")
    background.call_later(0.0, over.set)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await over.wait()
        while not done:  # noqa: ASYNC110 - the task has no event
            await asyncio.sleep(0)
    assert done == [3]
    assert spans == []


async def test_clocks_are_read_outside_of_spans_and_not_noted(recorded):
    around, spans = recorded
    assert abs(around.clock.wall() - SYSTEM_CLOCK.wall()) < 3600
    assert around.clock.monotonic() <= SYSTEM_CLOCK.monotonic()
    assert around.clock.cpu() <= SYSTEM_CLOCK.cpu()
    assert spans == []
