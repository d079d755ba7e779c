"""A busy loop pauses often, an idle one seldom."""

import asyncio

import pytest

from berth.scheduler.loop.pauses import BUSY_SECONDS, BUSY_SHARE, IDLE_SECONDS, PAUSE_SECONDS, LoopPauses


class Loop:
    """Timers of a loop that a test runs."""

    def __init__(self):
        self.timers = []

    def call_later(self, seconds, call):
        handle = asyncio.TimerHandle(seconds, call, (), self)
        self.timers.append(handle)
        return handle

    def get_debug(self):
        return False

    def _timer_handle_cancelled(self, handle):
        self.timers.remove(handle)

    def step(self):
        """Run the next timer; answers how long it had to wait."""
        handle = self.timers.pop(0)
        handle._run()
        return handle.when()


@pytest.mark.parametrize(
    ("share", "every"), [(1.0, BUSY_SECONDS), (BUSY_SHARE / 2, IDLE_SECONDS), (0.0, IDLE_SECONDS)]
)
def test_how_often_a_loop_pauses(share, every):
    loop, slept, used = Loop(), [], [0.0]
    pauses = LoopPauses(loop, sleep=slept.append, cpu=lambda: used[0])
    pauses.begin()
    for _ in range(5):
        used[0] += share * loop.timers[0].when()
        waited = loop.step()

    assert every == waited
    assert [PAUSE_SECONDS] * 6 == slept


def test_it_pauses_no_more_after_its_end():
    loop = Loop()
    pauses = LoopPauses(loop, sleep=lambda _: None, cpu=lambda: 0.0)
    pauses.begin()
    pauses.end()

    assert [] == loop.timers
