"""What a reflector has read and handed to its handler: how long that took, and how much of it is waiting.

Client-go counts the same of an informer. There a queue lies between the watch and the handlers; here events
are handed on as they are read: those of one read wait, and of a list those of a page.
Source: k8s.io/component-base/metrics/prometheus/clientgo/fifo/metrics.go (Kubernetes v1.37).
"""

from bisect import bisect_left
from collections.abc import Callable

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Of the histogram. Units: seconds."""


class Handling:
    """Events and listed objects handled: by bucket of their time, the last one above all bounds, and in all.

    Another thread may read copies.
    """

    __slots__ = ("_monotonic", "_since", "counts", "queued", "total")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.begin(0)
        self.clear()

    def clear(self) -> None:
        """Start afresh; what waits goes on waiting."""
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def begin(self, count: int) -> None:
        """So many were read, and the first one is handled now; what was left of those before is given up."""
        self.queued = count
        self.go_on()

    def go_on(self) -> None:
        """The next one is handled now, after a pause."""
        self._since = self._monotonic()

    def done(self) -> float:
        """One is handled, and the next one begins. Units: the result is the clock's seconds."""
        now = self._monotonic()
        self.counts[bisect_left(BOUNDS, now - self._since)] += 1
        self.total += now - self._since
        self.queued -= 1
        self._since = now
        return now
