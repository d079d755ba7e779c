"""The loop that drives the core: flush what is due, pop, schedule, one pod at a time.

Only one turn runs at a time; whoever wants to look at the snapshot in between takes the `turn` lock.
"""

import asyncio
from collections.abc import Callable

from berth.framework.clock import Clock
from berth.scheduler.core_assembly import SchedulerCore

LONGEST_WAIT_SECONDS = 30.0
FOLLOW_SECONDS = 5.0


class SchedulingLoop:
    """Pops pods for as long as it runs; `stop` ends it between two turns, so that nothing is half done.

    `may_decide` is asked before each pop; a no ends the run, but does not stop the loop.
    """

    def __init__(
        self, core: SchedulerCore, clock: Clock, may_decide: Callable[[], bool] = lambda: True
    ) -> None:
        self.turn = asyncio.Lock()
        self._may_decide = may_decide
        self._core = core
        self._clock = clock
        self._wake = asyncio.Event()
        self._stopping = False
        core.shared.queue.on_ready = self._wake.set

    async def run(self) -> bool:
        """Schedule until stopped, or until no decision may be taken; whether it was stopped.

        May be called again after that.
        """
        queue = self._core.shared.queue
        self._stopping = False
        while not self._stopping and self._may_decide():
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
        return self._stopping

    def stop(self) -> None:
        """End `run` after the turn that is on, if any."""
        self._stopping = True
        self._wake.set()

    async def follow(self) -> None:
        """Let the snapshot follow the cache while no pod is scheduled, as on a replica that does not lead.

        What it has yet to take over would grow with every event otherwise.
        """
        shared = self._core.shared
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            async with self.turn:
                shared.cache.update_snapshot(shared.snapshot)

    async def _idle(self) -> None:
        """Wait until a pod is ready or a flush is due."""
        due = self._core.shared.queue.next_flush_time() - self._clock.now()
        self._wake.clear()
        if self._stopping or self._core.shared.queue.ready:
            return
        try:
            async with asyncio.timeout(min(max(due, 0.0), LONGEST_WAIT_SECONDS)):
                await self._wake.wait()
        except TimeoutError:
            return
