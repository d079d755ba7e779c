"""Virtual time: it advances at once when all tasks wait."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

BEGINNING_SECONDS: Final = 1_000
NANOSECONDS: Final = 1_000_000_000

Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Runs a coroutine in virtual time for as long as the simulation lasts."""

Events = list[tuple[selectors.SelectorKey, int]]


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that skips waiting: a sleep of a minute ends as soon as all other tasks wait, too.

    Time is kept in whole nanoseconds, so that equal times compare as equal. `moves` is called when
    all tasks wait, before time advances; it returns whether a task can go on.
    """

    def __init__(self, moves: Callable[[], bool] = lambda: False) -> None:
        # asyncio adds a nanosecond to the time, which seconds since the epoch would lose to rounding.
        self._now_ns = BEGINNING_SECONDS * NANOSECONDS
        self._idle: list[asyncio.Future[None]] = []
        self._moves = moves
        super().__init__(_Skipping(self))

    def time(self) -> float:
        """Virtual seconds."""
        return self._now_ns / NANOSECONDS

    def work(self, seconds: float) -> None:
        """Advance time while nothing else runs, as work on a CPU does."""
        self._now_ns += round(seconds * NANOSECONDS)

    async def idle(self) -> None:
        """Return once all other tasks wait."""
        waiter = self.create_future()
        self._idle.append(waiter)
        await waiter

    def nothing_to_do(self, seconds: float | None) -> None:
        """Called where the loop would wait that long; None means without limit."""
        if self._moves():
            return
        waiting, self._idle = [w for w in self._idle if not w.done()], []
        if waiting:
            for waiter in waiting:
                waiter.set_result(None)
        elif seconds is None:
            raise RuntimeError("everything waits, and no timer is set: this would never end")
        else:
            self._now_ns += max(1, round(seconds * NANOSECONDS))


class _Skipping(selectors.BaseSelector):
    """A selector that advances virtual time instead of waiting."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> Events:
        """The events that are ready now."""
        if timeout is None or timeout > 0:
            self._loop.nothing_to_do(timeout)
        return self._real.select(0)


@dataclass
class LoopClock:
    """The scheduler's Clock on the loop's time; its wall clock is ahead by `ahead`. Units: seconds."""

    loop: asyncio.AbstractEventLoop
    ahead: float = 0.0

    def wall(self) -> float:
        """The wall clock."""
        return self.loop.time() + self.ahead

    def monotonic(self) -> float:
        """The clock that never goes back."""
        return self.loop.time()

    def cpu(self) -> float:
        """Only `work` uses CPU: no cycle exceeds its budget by chance."""
        return self.loop.time()
