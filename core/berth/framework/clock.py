"""Time as it is handed to the core: nothing below the adapters reads the wall clock itself."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since the epoch, and seconds of a clock that never jumps."""

    def now(self) -> float:
        """Wall-clock seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that only ever grow; for durations."""

    def cpu(self) -> float:
        """CPU seconds of the thread that asks."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Wall-clock seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    def cpu(self) -> float:
        """CPU seconds of the thread that asks."""
        return time.thread_time()
