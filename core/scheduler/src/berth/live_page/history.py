"""Queue lengths and rates of the last minutes, a point each second, in arrays of fixed size."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.framework.clock import Clock
from berth.live_page.recent_attempts import RecentAttempts
from berth.queue.sub_queues import QueueSizes

SECONDS = 300
SERIES = (*QueueSizes._fields, "attempts", "scheduled")
"""Lengths of the queue's parts, and rates a second; the rows of the points."""
MOST = 2**32 - 1


class Points(msgspec.Struct, frozen=True, gc=False):
    """Every series, oldest first: little-endian uint32, base64 in JSON. Units: pods; pods a second."""

    seconds: int
    series: dict[str, bytes]


@dataclass(slots=True)
class History:
    """Takes a point of `sizes` and of the counts of `recent` when `sample` is called, once a second.

    Shapes: points uint32 (6, 300).
    """

    sizes: Callable[[], QueueSizes]
    recent: RecentAttempts
    clock: Clock
    _points: NDArray[np.uint32] = field(
        default_factory=lambda: np.zeros((len(SERIES), SECONDS), dtype="<u4"), init=False
    )
    _taken: int = field(default=0, init=False)
    _before: tuple[float, int, int] | None = field(default=None, init=False)

    async def follow(self) -> None:
        """Take a point each second until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(1)

    def sample(self) -> None:
        """Take a point; seconds that a long turn left out get the same one."""
        now, recent = self.clock.monotonic(), self.recent
        before, attempts, scheduled = self._before or (now - 1, recent.attempts, recent.scheduled)
        self._before = now, recent.attempts, recent.scheduled
        passed = max(now - before, 0.001)
        rates = (recent.attempts - attempts) / passed, (recent.scheduled - scheduled) / passed
        point = [min(round(value), MOST) for value in (*self.sizes(), *rates)]
        steps = min(max(1, round(passed)), SECONDS)
        self._points[:, :-steps] = self._points[:, steps:]
        self._points[:, -steps:] = np.array(point, dtype=np.uint32)[:, np.newaxis]
        self._taken = min(self._taken + steps, SECONDS)

    def points(self) -> Points:
        """The points so far."""
        series = {
            name: row[SECONDS - self._taken :].tobytes()
            for name, row in zip(SERIES, self._points, strict=True)
        }
        return Points(SECONDS, series)
