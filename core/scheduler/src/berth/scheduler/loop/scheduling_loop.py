"""The loop that drives the core: flush what is due, then pop and schedule a turn of pods.

A turn is over after `TURN_PODS` pods or `TURN_SECONDS`, or when no pod is ready; watches, bindings and timers
are served between turns. Nothing comes in within a turn unless a cycle waits for something, so its pods are
decided on as if each had a turn of its own. Only one turn runs at a time, whichever shard's it is; the `turn`
lock keeps it off the snapshot.
"""

import asyncio
from collections.abc import Callable

from berth.framework.clock import Clock
from berth.recordings.core.recorded_scheduler import RecordedScheduler
from berth.scheduler.scheduler import Scheduler

LONGEST_WAIT_SECONDS = 30.0
FOLLOW_SECONDS = 5.0
TURN_PODS = 64
TURN_SECONDS = 0.002


class SchedulingLoop:
    """Pops a shard's pods for as long as it runs; `stop` ends it between two pods: nothing is left half done.

    `ready` is set whenever a pod is ready to be popped (`on_ready` of the scheduler). `may_decide` is asked
    before each pop; a no ends the run, but does not stop the loop. Loops of one scheduler share `ready` and
    `turn`.
    """

    def __init__(
        self,
        scheduler: Scheduler | RecordedScheduler,
        *,
        clock: Clock,
        ready: asyncio.Event,
        turn: asyncio.Lock,
        may_decide: Callable[[], bool] = lambda: True,
        shard: str = "",
    ) -> None:
        self._turn = turn
        self._shard = shard
        self._may_decide = may_decide
        self._scheduler = scheduler
        self._clock = clock
        self._wake = ready
        self._stopping = False

    async def run(self) -> bool:
        """Schedule until stopped, or until no decision may be taken; whether it was stopped.

        May be called again after that.
        """
        queue = self._scheduler.queue
        self._stopping = False
        while self._goes_on():
            if self._clock.monotonic() >= queue.next_flush_time():
                queue.flush()
            if await self._schedule_some():
                await asyncio.sleep(0)
            else:
                await self._idle()
        return self._stopping

    def _goes_on(self) -> bool:
        return not self._stopping and self._may_decide()

    async def _schedule_some(self) -> bool:
        """A turn; False where there is nothing to do but to wait."""
        queue, schedule = self._scheduler.queue, self._scheduler.schedule_one.schedule
        async with self._turn:
            over, pods = self._clock.monotonic() + TURN_SECONDS, 0
            going_on = self._goes_on()
            while going_on and pods < TURN_PODS and (info := queue.pop(self._shard)) is not None:
                await schedule(info)
                pods += 1
                going_on = not self._stopping and self._clock.monotonic() < over
        return pods > 0 or not self._goes_on()

    def stop(self) -> None:
        """End `run` after the pod that is being scheduled, if any."""
        self._stopping = True
        self._wake.set()

    async def _idle(self) -> None:
        """Wait until a pod is ready or a flush is due."""
        due = self._scheduler.queue.next_flush_time() - self._clock.monotonic()
        # Another loop that waits for it was woken when it was set.
        self._wake.clear()
        if self._stopping or self._scheduler.queue.ready(self._shard):
            return
        async with self._turn:
            self._scheduler.ask_ahead()
        try:
            async with asyncio.timeout(min(max(due, 0.0), LONGEST_WAIT_SECONDS)):
                await self._wake.wait()
        except TimeoutError:
            return


async def follow(scheduler: Scheduler, turn: asyncio.Lock) -> None:
    """Let the snapshot follow the cache while no pod is scheduled, as on a replica that does not lead.

    What it has yet to take over would grow with every event otherwise.
    """
    while True:
        await asyncio.sleep(FOLLOW_SECONDS)
        async with turn:
            scheduler.cache.update_snapshot(scheduler.snapshot)
