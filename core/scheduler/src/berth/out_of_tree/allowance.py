"""How much of something may happen in a while: a bucket of units that fills at a steady rate.

Called by: streams that are read no faster than that, log lines, full transfers.
"""

from collections.abc import Callable

from berth.framework.clock import SYSTEM_CLOCK


class Allowance:
    """So many units at once, so many a second in the long run; `now` is a monotonic clock in seconds."""

    def __init__(
        self, at_once: float, a_second: float, now: Callable[[], float] = SYSTEM_CLOCK.monotonic
    ) -> None:
        self._most = at_once
        self._rate = a_second
        self._now = now
        self._left = at_once
        self._looked = now()

    def admits(self, units: float = 1) -> bool:
        """Take the units if they are there; whether they were."""
        self._fill()
        if self._left < units:
            return False
        self._left -= units
        return True

    def debt_seconds(self, units: float = 1) -> float:
        """Take the units, there or not; how long to wait until they would have been."""
        self._fill()
        self._left -= units
        return max(-self._left / self._rate, 0.0)

    def _fill(self) -> None:
        now = self._now()
        self._left = min(self._most, self._left + (now - self._looked) * self._rate)
        self._looked = now
