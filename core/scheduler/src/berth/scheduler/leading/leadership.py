"""Who schedules a shard: campaigning for its lease, scheduling while it is held, stepping down, and again.

    synced ──► campaigning ──► leading: fence, then the loop runs ──► lost: the loop stops between two turns
                  (with delayCacheUntilActive the first lists are read while leading, not before)

Each shard has a leadership, a fence and a loop of its own, and no part in the others'. Without an election
the loop simply runs. Writes ask for themselves whether the lease is fresh.

Source: cmd/kube-scheduler/app/server.go Run; client-go tools/leaderelection (Kubernetes v1.36).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from berth.client.errors import LeaseLostError
from berth.scheduler.leading.campaign import Campaign
from berth.scheduler.leading.fence import Fence
from berth.scheduler.loop.scheduling_loop import SchedulingLoop

log = logging.getLogger(__name__)

RELEASE_SECONDS = 1.0


class Leadership:
    """Runs the loop when it may; `prepare` makes everything ready for it, and says whether it had to list."""

    def __init__(
        self,
        elector: Campaign | None,
        loop: SchedulingLoop,
        fence: Fence,
        prepare: Callable[[], Awaitable[bool]],
        *,
        delayed: bool,
    ) -> None:
        self._elector = elector
        self._loop = loop
        self._fence = fence
        self._prepare = prepare
        self._delayed = delayed and elector is not None
        self._deciding = False
        self._holding: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        """Whether this process is the one that schedules the shard."""
        return self._elector is None or self._elector.leading

    @property
    def leader(self) -> str:
        """The identity of the process that schedules; empty while that is not known."""
        return "" if self._elector is None else self._elector.holder

    def check(self) -> str:
        """The health check `leaderElection`: a standby is healthy."""
        healthy = self._elector is None or self._elector.is_healthy()
        return "" if healthy else "the lease ran out and was not renewed"

    async def run(self) -> None:
        """Campaign and schedule until cancelled, or until the loop breaks; hold the lease until `release`."""
        if not self._delayed:
            await self._prepare()
        while True:
            if self._elector is not None:
                await self._elector.acquire()
            await self._schedule_while_leading()

    async def release(self, *, settled: bool) -> None:
        """Give the lease back, or let it run out where writes are not `settled`.

        A successor that takes a released lease does not wait until what is under way can land no more.
        """
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.gather(self._holding, return_exceptions=True)
        if self._elector is None or not self._elector.leading:
            return
        if not settled:
            log.warning("lease not released, it will run out err=%s", "writes under way are not answered")
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._elector.release()
        except TimeoutError:
            log.warning(
                "lease not released, it will run out err=%s", f"no answer within {RELEASE_SECONDS:g} s"
            )

    async def _schedule_while_leading(self) -> None:
        """Schedule while the lease is held; a loop that breaks ends the process rather than hold on to it."""
        work, holding = asyncio.create_task(self._schedule()), asyncio.create_task(self._hold())
        self._holding = holding
        try:
            await asyncio.wait((work, holding), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The process ends, and with it everything that a turn which is cut off leaves half done.
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise
        for part in (work, holding):
            if part.done():
                part.result()
        self._loop.stop()
        if not self._deciding:
            work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    async def _schedule(self) -> None:
        """Decide whenever the fence is down, until the loop is stopped."""
        listed = await self._prepare()
        # Lists begun after the acquisition are a proof; without an election there is no predecessor.
        self._fence.begin_term(raised=self._elector is not None and not listed)
        stopped = False
        while not stopped:
            await self._fence.lower()
            self._deciding = True
            try:
                stopped = await self._loop.run()
            finally:
                self._deciding = False

    async def _hold(self) -> None:
        """Return once this process may lead no longer; without an election that is never."""
        if self._elector is None:
            await asyncio.Event().wait()
            return
        try:
            await self._elector.hold()
        except LeaseLostError:
            log.warning("stepped down, campaigning again")
