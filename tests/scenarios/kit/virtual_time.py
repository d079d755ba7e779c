"""Time that passes only when nothing is left to do, and then at once."""

import asyncio
import selectors
from dataclasses import dataclass

BEGINNING_SECONDS = 1_000
NANOSECONDS = 1_000_000_000


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that skips the waiting: who sleeps for a minute goes on as soon as all others wait, too.

    Time is kept in whole nanoseconds, so that moments that should be equal are.
    """

    def __init__(self):
        self._now_ns = BEGINNING_SECONDS * NANOSECONDS
        self._idle = []
        super().__init__(_Skipping(self))

    def time(self):
        return self._now_ns / NANOSECONDS

    def work(self, seconds):
        """Let time pass while nothing else runs: what runs uses CPU."""
        self._now_ns += round(seconds * NANOSECONDS)

    async def idle(self):
        """Return once nothing can go on at this moment."""
        waiter = self.create_future()
        self._idle.append(waiter)
        await waiter

    def nothing_to_do(self, seconds):
        """Called where the loop would wait that long, None standing for ever."""
        waiting, self._idle = [w for w in self._idle if not w.done()], []
        if waiting:
            for waiter in waiting:
                waiter.set_result(None)
        elif seconds is None:
            raise RuntimeError("everything waits, and no timer is set: this would never end")
        else:
            self._now_ns += max(1, round(seconds * NANOSECONDS))


class _Skipping(selectors.DefaultSelector):
    """A selector that lets virtual time pass instead of waiting."""

    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        if timeout is None or timeout > 0:
            self._loop.nothing_to_do(timeout)
        return super().select(0)


@dataclass(frozen=True)
class LoopClock:
    """The scheduler's Clock, on the loop's time. Units: seconds."""

    loop: asyncio.AbstractEventLoop

    def now(self):
        return self.loop.time()

    def monotonic(self):
        return self.loop.time()

    def cpu(self):
        return self.loop.time()
