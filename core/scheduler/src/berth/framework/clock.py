"""Time as it is handed to parts: no other module of a scheduler reads the machine's clocks.

Deadlines of asyncio are the exception: they are in the event loop's own time.
"""

import time
from typing import Protocol

nanoseconds = time.monotonic_ns
"""Of a clock that never jumps: the times of cycle records."""

# CLOCK_MONOTONIC stands still while a machine sleeps: a lease would look fresh on wake-up.
_NEVER_BACK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """The time of day, which may be set back or forward at any moment, and a clock that only goes on.

    What is waited for, compared or measured is read from `monotonic()`; `wall()` is for what is shown, logged
    or written to the API, and for comparison with times that objects of the API carry.
    """

    def wall(self) -> float:
        """Wall-clock seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, at the pace of time."""

    def cpu(self) -> float:
        """CPU seconds of the thread that asks."""


class SystemClock:
    """The machine's clocks."""

    def wall(self) -> float:
        """Wall-clock seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since boot, time spent suspended included where the system counts it."""
        return time.clock_gettime(_NEVER_BACK)

    def cpu(self) -> float:
        """CPU seconds of the thread that asks."""
        return time.thread_time()


SYSTEM_CLOCK = SystemClock()
"""For parts that are handed no other clock."""


def wall_time(clock: Clock, moment: float) -> float:
    """The wall clock's time of a moment of the monotonic clock, by what the wall clock says now."""
    return clock.wall() + (moment - clock.monotonic())
