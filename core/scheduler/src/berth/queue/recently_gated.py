"""Pods that plugins began to keep out of the queue a moment ago: it is not said yet what they wait for.

A pod that waits no longer for its group or claim, as each does while these are created, says nothing: a write
for each pod of each gang would be for nothing. While pods of a group come, the group's moment begins anew.
"""

from collections.abc import Callable, Iterator
from math import inf

from berth.framework.clock import Clock
from berth.framework.queueing.queued_pod import QueuedPodInfo

PATIENCE_SECONDS = 1.0


class RecentlyGated:
    """Records by key, the one that is held back the longest first. Cost: O(1) for each that is held back.

    `wake` is called where there were none: the next flush is to come earlier.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._since: dict[str, tuple[QueuedPodInfo, float]] = {}

    def note(self, record: QueuedPodInfo) -> None:
        """Take in a pod that is held back from now on, or for another reason."""
        self._since.pop(record.key, None)
        self._since[record.key] = record, self._clock.monotonic()
        if len(self._since) == 1:
            self._wake()

    def forget(self, key: str) -> None:
        """Drop a record that leaves the queue: a replica that does not lead has nothing flushed."""
        self._since.pop(key, None)

    def next_time(self) -> float:
        """When the next one has waited long enough. Units: seconds of the monotonic clock."""
        first = next(iter(self._since.values()), None)
        return inf if first is None else first[1] + PATIENCE_SECONDS

    def due(self) -> Iterator[QueuedPodInfo]:
        """Give out those that have waited long enough, each once; some wait no more, or with their group."""
        now = self._clock.monotonic()
        while self._since and self.next_time() <= now:
            yield self._since.pop(next(iter(self._since)))[0]
