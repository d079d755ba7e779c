"""Who schedules: campaigning for the lease, scheduling while it is held, stepping down and campaigning again.

    synced ──► campaigning ──► leading: the loop runs ──► lost: the loop stops between two turns
                  (with delayCacheUntilActive the first lists are read while leading, not before)

Without an election the loop simply runs. Writes ask for themselves whether the lease is fresh.

Source: spec/core.md 8.5; spec/config.md 15.3, 15.4.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from berth.client.errors import LeaseLostError
from berth.scheduler.campaign import Campaign
from berth.scheduler.scheduling_loop import SchedulingLoop

log = logging.getLogger(__name__)


class Leadership:
    """Runs the loop when it may; `prepare` makes everything ready for it, and does nothing the next time."""

    def __init__(
        self,
        elector: Campaign | None,
        loop: SchedulingLoop,
        prepare: Callable[[], Awaitable[None]],
        *,
        delayed: bool,
    ) -> None:
        self._elector = elector
        self._loop = loop
        self._prepare = prepare
        self._delayed = delayed and elector is not None
        self._prepared = False

    @property
    def leads(self) -> bool:
        """Whether this process is the one that schedules."""
        return self._elector is None or self._elector.leading

    def check(self) -> str:
        """The health check `leaderElection`: a standby is healthy."""
        healthy = self._elector is None or self._elector.is_healthy()
        return "" if healthy else "the lease ran out and was not renewed"

    async def run(self) -> None:
        """Campaign and schedule until cancelled, or until the loop breaks."""
        if not self._delayed:
            await self._make_ready()
        while True:
            if self._elector is not None:
                await self._elector.acquire()
            await self._schedule_while_leading()

    async def release(self) -> None:
        """Give the lease back."""
        if self._elector is not None:
            await self._elector.release()

    async def _schedule_while_leading(self) -> None:
        """Schedule while the lease is held; a loop that breaks ends the process rather than hold on to it."""
        work, holding = asyncio.create_task(self._schedule()), asyncio.create_task(self._hold())
        try:
            done, _ = await asyncio.wait((work, holding), return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        finally:
            self._loop.stop()
            holding.cancel()
            if not self._prepared:
                work.cancel()
            await asyncio.gather(work, holding, return_exceptions=True)

    async def _schedule(self) -> None:
        await self._make_ready()
        await self._loop.run()

    async def _make_ready(self) -> None:
        await self._prepare()
        self._prepared = True

    async def _hold(self) -> None:
        """Return once this process may lead no longer; without an election that is never."""
        if self._elector is None:
            await asyncio.Event().wait()
            return
        try:
            await self._elector.hold()
        except LeaseLostError:
            log.warning("stepped down, campaigning again")
