"""A circuit breaker: stops calls to a plugin that keeps failing, and probes whether it has recovered.

    closed --FAILURES_IN_A_ROW--> open --pause--> half open --probe answered--> closed
                                   ^                  |
                                   +-- probe failed --+   (twice the pause, up to the longest)

Half open, one call is let through as a probe; all others fail at once. Source: docs/protocol.md "Failures".
"""

from collections.abc import Callable
from enum import Enum

from berth.framework.pacing import Backoff

FAILURES_IN_A_ROW = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
PROBES = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)


class Circuit(Enum):
    """Whether calls go through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half open"


class Breaker:
    """One plugin's circuit; `now` is a monotonic clock in seconds, `on_change` gets every change."""

    def __init__(self, now: Callable[[], float], on_change: Callable[[Circuit], None]) -> None:
        self.circuit = Circuit.CLOSED
        self._now = now
        self._on_change = on_change
        self._failures = 0
        self._failed_probes = 0
        self._opens_at = 0.0
        self._probing = False

    @property
    def pause_left(self) -> float:
        """Seconds until the next probe."""
        return max(self._opens_at - self._now(), 0.0) if self.circuit is Circuit.OPEN else 0.0

    def admits(self) -> bool:
        """Whether a call may be made now; while half open, the first one is the probe."""
        if self.circuit is Circuit.CLOSED:
            return True
        if self.circuit is Circuit.OPEN:
            if self._now() < self._opens_at:
                return False
            self._turn(Circuit.HALF_OPEN)
        if self._probing:
            return False
        self._probing = True
        return True

    def succeeded(self) -> None:
        """Record a call with a valid response."""
        self._failures, self._probing = 0, False
        if self.circuit is not Circuit.CLOSED:
            self._failed_probes = 0
            self._turn(Circuit.CLOSED)

    def failed(self) -> None:
        """Record a failed call."""
        self._failures += 1
        self._probing = False
        if self.circuit is Circuit.HALF_OPEN:
            self._failed_probes += 1
        elif self.circuit is Circuit.OPEN or self._failures < FAILURES_IN_A_ROW:
            return
        self._opens_at = self._now() + PROBES.pause(self._failed_probes + 1)
        self._turn(Circuit.OPEN)

    def gave_up(self) -> None:
        """Record a call that ended without saying anything about the plugin's health."""
        self._probing = False

    def restarted(self) -> None:
        """Record a restart of the plugin: the next call is its probe."""
        self._opens_at = self._now()

    def _turn(self, circuit: Circuit) -> None:
        if circuit is not self.circuit:
            self.circuit = circuit
            self._on_change(circuit)
