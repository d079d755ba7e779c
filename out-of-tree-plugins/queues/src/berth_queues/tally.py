"""What became of each queue's pods while this process ran: placed, evicted for others, how long they waited.

A pod waits from the moment at which the plugin first heard of it until the attempt began that placed it. It
counts once it waits no more, or is seen on its node in the cluster's state, or seen to be gone from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from berth_queues.waiting import WaitingPod

MAX_TALLIES = 8192
"""Namespaces without a queue have one each: those whose pods came to something longest ago are dropped."""


@dataclass(slots=True)
class Tally:
    """One queue's. Units: seconds."""

    placed: int = 0
    evicted: int = 0
    waited_seconds: float = 0.0
    longest_seconds: float = 0.0


class Tallies:
    """The tally of each queue, by name."""

    def __init__(self) -> None:
        self._by_queue: dict[str, Tally] = {}

    @property
    def by_queue(self) -> Mapping[str, Tally]:
        """Return those there are."""
        return self._by_queue

    def placed(self, pod: WaitingPod) -> None:
        """Count a pod that got its node; a second time changes nothing."""
        if pod.placed_at is None or pod.counted:
            return
        pod.counted = True
        tally, waited = self._of(pod.queue), pod.placed_at - pod.since
        tally.placed += 1
        tally.waited_seconds += waited
        tally.longest_seconds = max(tally.longest_seconds, waited)

    def evicted(self, queue: str) -> None:
        """Count a pod that had to go for another one."""
        self._of(queue).evicted += 1

    def _of(self, queue: str) -> Tally:
        found = self._by_queue.pop(queue, None) or Tally()
        if len(self._by_queue) >= MAX_TALLIES:
            del self._by_queue[next(iter(self._by_queue))]
        self._by_queue[queue] = found
        return found
