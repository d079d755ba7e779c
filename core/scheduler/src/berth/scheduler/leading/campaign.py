"""The election as the scheduling loop awaits it, run by the control thread.

    scheduling loop                  control loop
    acquire() ─────────────────────► campaign; from the moment it is won on, renew
    hold()    ─────────────────────► wait until the renewing ends
    release() ─────────────────────► end the renewing, give the lease back
    is_fresh(), leading ◄─ read ──── what the elector last wrote

Renewing begins where the lease is won: the loop that is to hold it may be in a long turn just then.
"""

import asyncio

from berth.client.leases import LeaderElector, LeaseSettings
from berth.scheduler.loop.control_thread import ControlThread


class Campaign:
    """A LeaderElector for another thread; the questions are answered in the thread that asks."""

    def __init__(self, elector: LeaderElector, control: ControlThread) -> None:
        self._elector = elector
        self._control = control
        self._renewing: asyncio.Task[None] | None = None
        # A task that was cancelled from the other thread ends here before the next one begins.
        self._turn = asyncio.Lock()

    @property
    def settings(self) -> LeaseSettings:
        """Which lease, and its times."""
        return self._elector.settings

    @property
    def leading(self) -> bool:
        """Whether this process leads, as far as it knows."""
        return self._elector.leading

    @property
    def holder(self) -> str:
        """Who holds the lease, as far as it knows."""
        return self._elector.holder

    @property
    def trouble(self) -> str:
        """What keeps it from acquiring or renewing the lease; empty where nothing does."""
        return self._elector.trouble

    @property
    def failures(self) -> int:
        """How many tries in a row failed for that."""
        return self._elector.failures

    def is_held(self) -> bool:
        """Whether any process holds the lease, as far as this one knows."""
        return self._elector.is_held()

    def is_fresh(self) -> bool:
        """Whether this process can prove that it leads, now."""
        return self._elector.is_fresh()

    def margin(self) -> float:
        """How much of the time for renewing the lease is left, from 1 to 0."""
        return self._elector.margin()

    def is_healthy(self) -> bool:
        """False where the lease ran out long ago and this process still leads on paper."""
        return self._elector.is_healthy()

    async def acquire(self) -> None:
        """Campaign until this process leads; the lease is renewed from then on."""
        await self._control.run(self._acquire())

    async def hold(self) -> None:
        """Wait for as long as the lease is renewed; when cancelled, it is renewed no longer.

        Raises: LeaseLostError.
        """
        await self._control.run(self._hold())

    async def release(self) -> None:
        """Stop leading and let the next candidate in at once, if this process leads."""
        await self._control.run(self._release())

    async def _acquire(self) -> None:
        async with self._turn:
            await self._elector.acquire()
            self._renewing = asyncio.create_task(self._elector.hold(), name="lease")

    async def _hold(self) -> None:
        async with self._turn:
            if self._renewing is not None:
                await self._renewing

    async def _release(self) -> None:
        if self._renewing is not None:
            # Where holding was cancelled, renewing is on its way to its end: that is not to be cut short.
            if not self._renewing.cancelling():
                self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        async with self._turn:
            await self._elector.release()
