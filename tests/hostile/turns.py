"""The longest turn of each plugin: what it does between two looks at the meter of a cycle."""

import asyncio
import gc
import sys
import time
from contextlib import contextmanager

from berth.explain.trying import Trying
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import CpuTime, CycleMeter
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.queue.pools.nominator import Nominator

REST = "the rest of the cycle"


class NoTime:
    """A clock on which no time passes: no turn is due, no budget is used up."""

    def monotonic(self):
        return 0.0

    cpu = monotonic


class WatchedMeter(CycleMeter):
    """Notes what was done since the last look at it as the work of the plugin that looks."""

    def __init__(self, done):
        super().__init__(1000.0, CpuTime(NoTime()), no_turn)
        self.longest = {}
        self._done, self._before = done, done()

    def note(self, where):
        """So much was done by it since the last look."""
        now = self._done()
        self.longest[where] = max(self.longest.get(where, 0), now - self._before)
        self._before = now

    def worked(self, where):
        self.note(where)
        return super().worked(where)

    def verdict(self, where):
        self.note(where)
        return super().verdict(where)

    async def go_on(self, where):
        self.note(where)
        return await super().go_on(where)

    def may_go_on(self, where):
        self.note(where)
        return super().may_go_on(where)


async def no_turn():
    pass


@contextmanager
def counting_calls():
    """Gives what says how many functions have been called so far."""
    calls = 0

    def note(_frame, event, _argument):
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield lambda: calls
    finally:
        sys.setprofile(before)


def calls_of_turns(cycle):
    """The calls of each plugin's longest turn, all plugins on."""
    with counting_calls() as done:
        return turns(cycle, done)


def milliseconds_of_turns(cycle):
    """The same in milliseconds of CPU, without those of the collector, whose turn may be any plugin's."""
    gc.collect()
    gc.disable()
    try:
        return turns(cycle, lambda: 1000 * time.thread_time())
    finally:
        gc.enable()


def turns(cycle, done):
    """The longest turn by plugin: in the cycle as it is, and where each plugin is asked as if it were alone.

    The second asks those that the first does not come to, because another plugin turned the pod down before.
    """
    meter = WatchedMeter(done)
    state, record = CycleState(meter), CycleRecord(cycle.pod, "", 1, b"", b"", 0, 0, 0)
    state.write(CycleRecord, record)
    attempt = Attempt(cycle.pod, cycle.snapshot, state, record)
    trying = Trying(Nominator(lambda *_: None, lambda _: None))

    async def run():
        await meter.timed(cycle.algorithm.decide(cycle.framework, attempt))
        meter.note(REST)
        await meter.timed(trying.by_plugin(cycle.framework, cycle.pod, cycle.snapshot, meter))

    asyncio.run(run())
    return meter.longest
