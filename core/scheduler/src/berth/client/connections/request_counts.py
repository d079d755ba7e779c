"""What a transport counts of its requests; each belongs to the one loop that sends over it.

Source: k8s.io/component-base/metrics/prometheus/restclient/metrics.go (Kubernetes v1.36).
"""

from bisect import bisect_left

BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Upper bounds of the buckets of durations. Units: seconds."""
ERROR = "<error>"
"""In place of a status code: no answer came."""
_STATUSES = range(100, 600)


class DurationHistogram:
    """How many requests took how long: by bucket, the last one above all bounds, and in all."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0


class RequestCounts:
    """Requests by status code and method, and how long they took by method.

    Another thread may read copies of both.
    """

    __slots__ = ("codes", "durations")

    def __init__(self) -> None:
        self.codes: dict[tuple[str, str], int] = {}
        self.durations: dict[str, DurationHistogram] = {}

    def answered(self, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered with that status."""
        # What HTTP does not know as a status would be a label of its own each time.
        self._count(str(status) if status in _STATUSES else ERROR, method)
        self._took(method, seconds)

    def failed(self, method: str, seconds: float | None = None) -> None:
        """Count a request without an answer; one that was not sent took no time."""
        self._count(ERROR, method)
        if seconds is not None:
            self._took(method, seconds)

    def clear(self) -> None:
        """Start afresh."""
        self.codes, self.durations = {}, {}

    def _count(self, code: str, method: str) -> None:
        self.codes[code, method] = self.codes.get((code, method), 0) + 1

    def _took(self, method: str, seconds: float) -> None:
        durations = self.durations.get(method)
        if durations is None:
            durations = self.durations[method] = DurationHistogram()
        durations.counts[bisect_left(BOUNDS, seconds)] += 1
        durations.total += seconds
