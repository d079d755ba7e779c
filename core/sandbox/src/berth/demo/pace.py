"""How fast a run goes, and when it is over."""

import time

from berth.demo.progress import Progress


class DemoPace:
    """A run's clock, and what the last looks at it gave. Units: seconds."""

    def __init__(self, pods: int, timeout_seconds: float) -> None:
        self._pods = pods
        self._timeout_seconds = timeout_seconds
        self._started = self._looked = self._last_bound = self._submitted = time.monotonic()
        self._bound = 0
        self._still = 0

    @property
    def elapsed(self) -> float:
        """Since the first pod was submitted."""
        return time.monotonic() - self._started

    @property
    def seconds(self) -> float:
        """From the first submission to the last binding that was seen."""
        return self._last_bound - self._started

    @property
    def submit_seconds(self) -> float:
        """How long it took to create all pods."""
        return self._submitted - self._started

    @property
    def late(self) -> bool:
        """Whether the run has taken longer than it may."""
        return self.elapsed > self._timeout_seconds

    def submitted(self) -> None:
        """All pods are created."""
        self._submitted = time.monotonic()

    def look(self, progress: Progress, *, all_submitted: bool) -> float:
        """Take the state of the moment in; the pods bound a second since the last look."""
        now = time.monotonic()
        if progress.bound != self._bound:
            self._last_bound = now
        rate = (progress.bound - self._bound) / (now - self._looked)
        self._looked, self._bound = now, progress.bound
        turned_down = progress.queues["unschedulable"]
        decided = not progress.waiting and progress.bound + turned_down >= self._pods
        self._still = self._still + 1 if all_submitted and decided else 0
        return rate

    def still_for(self, looks: int) -> bool:
        """Whether that many looks in a row found nothing left to try."""
        return self._still >= looks
