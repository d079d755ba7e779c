"""The loop that drives the core: flush what is due, pop, schedule, one pod at a time.

Only one turn runs at a time; whoever wants to look at the snapshot in between takes the `turn` lock.
"""

import asyncio

from berth.framework.clock import Clock
from berth.scheduler.core_assembly import SchedulerCore

LONGEST_WAIT_SECONDS = 30.0


class SchedulingLoop:
    """Pops pods for as long as it runs; cancelling it between two turns leaves nothing half done."""

    def __init__(self, core: SchedulerCore, clock: Clock) -> None:
        self.turn = asyncio.Lock()
        self._core = core
        self._clock = clock
        self._wake = asyncio.Event()
        core.shared.queue.on_ready = self._wake.set

    async def run(self) -> None:
        """Schedule until cancelled."""
        queue = self._core.shared.queue
        while True:
            if self._clock.now() >= queue.next_flush_time():
                queue.flush()
            record = queue.pop()
            if record is None:
                await self._idle()
                continue
            async with self.turn:
                await self._core.schedule_one.schedule(record)
            # Watches, bindings and lease renewals get their share after every pod.
            await asyncio.sleep(0)

    async def _idle(self) -> None:
        """Wait until a pod is ready or a flush is due."""
        due = self._core.shared.queue.next_flush_time() - self._clock.now()
        self._wake.clear()
        if self._core.shared.queue.ready:
            return
        try:
            async with asyncio.timeout(min(max(due, 0.0), LONGEST_WAIT_SECONDS)):
                await self._wake.wait()
        except TimeoutError:
            return
