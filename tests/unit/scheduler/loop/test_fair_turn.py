"""Questions that take the scheduling loop's turn: one after the other, and rarely while pods wait."""

import asyncio

import pytest

from berth.scheduler.loop.fair_turn import PODS_SHARE, FairTurn
from berth.testing.handles import ManualClock

QUESTIONS, SECONDS = 15, 0.3


class Desk:
    """A loop's turn on a clock of its own, and who had it."""

    def __init__(self, *, pods_wait):
        self.clock, self.turn, self.had_it = ManualClock(100.0), asyncio.Lock(), []
        self.fair = FairTurn(self.turn, lambda: pods_wait, self.clock)

    async def question(self, name):
        async with self.fair:
            self.had_it.append(name)
            self.clock.seconds += SECONDS

    async def pod(self):
        async with self.turn:
            self.had_it.append("pod")


async def test_a_pod_waits_for_one_question_however_many_are_asked():
    desk = Desk(pods_wait=False)
    async with desk.turn:
        asked = [asyncio.create_task(desk.question(i)) for i in range(QUESTIONS)]
        await asyncio.sleep(0)
        pod = asyncio.create_task(desk.pod())
        await asyncio.sleep(0)
    await asyncio.gather(*asked, pod)

    assert desk.had_it.index("pod") == 1


async def test_while_pods_wait_questions_have_a_tenth_of_the_time():
    desk = Desk(pods_wait=True)
    asked = [asyncio.create_task(desk.question(i)) for i in range(QUESTIONS)]
    began = desk.clock.seconds
    while not all(task.done() for task in asked):
        await asyncio.sleep(0)
        if not desk.turn.locked():
            desk.clock.seconds += SECONDS / 10
    spent = QUESTIONS * SECONDS

    assert desk.clock.seconds - began >= (QUESTIONS - 1) / QUESTIONS * (1 + PODS_SHARE) * spent


async def test_who_gives_up_waiting_keeps_no_other_waiting():
    desk = Desk(pods_wait=False)
    async with desk.turn:
        first = asyncio.create_task(desk.question("first"))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    await desk.question("second")

    assert ["second"] == desk.had_it
