"""Pauses of a busy loop, so that another thread of the process gets the interpreter.

A loop that computes and makes system calls gives the interpreter up at each of them, and takes it back before
a thread that waits for it has woken up; and each time that thread's wait begins anew, so that the switch
interval, after which it would be its turn, is never over (take_gil in Python/ceval_gil.h, CPython 3.11).
"""

import asyncio
import time
from collections.abc import Callable

from berth.framework.clock import SYSTEM_CLOCK

PAUSE_SECONDS = 0.00005
"""Long enough for a waiting thread to wake up."""
BUSY_SECONDS, IDLE_SECONDS = 0.01, 0.1
"""How often a busy loop pauses, and how often one is looked at that is not."""
BUSY_SHARE = 0.1
"""The share of a CPU from which on a loop is busy."""


class LoopPauses:
    """The pauses of one loop, from `begin` to `end`, both called in its thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        sleep: Callable[[float], None] = time.sleep,
        cpu: Callable[[], float] = SYSTEM_CLOCK.cpu,
    ) -> None:
        self._loop = loop
        self._sleep, self._cpu = sleep, cpu
        self._used, self._after = 0.0, IDLE_SECONDS
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Pause now and from now on."""
        self._sleep(PAUSE_SECONDS)
        used = self._cpu()
        busy = used - self._used > BUSY_SHARE * self._after
        self._used, self._after = used, BUSY_SECONDS if busy else IDLE_SECONDS
        self._next = self._loop.call_later(self._after, self.begin)

    def end(self) -> None:
        """Pause no more."""
        if self._next is not None:
            self._next.cancel()
