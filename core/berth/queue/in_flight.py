"""Pods that were popped and are not done, and the events that each of them has missed since.

    pop --> marker | event | event | marker of another pod | event ...
    done: the marker goes, and the events before the first marker left

Source: spec/core.md 2.11.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from berth.framework.cluster_event import ClusterEvent
from berth.queue.queue_metrics import QueueMetrics

POD_POPPED = "PodPopped"


class InFlightEvent(NamedTuple):
    """An event with the objects it came with, numbered in order of arrival."""

    number: int
    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Markers by pod UID over a list of events.

    A marker is the number that the first event after it gets. Cost: begin, record and done O(1) amortised.
    """

    __slots__ = ("_events", "_markers", "_metrics", "_next")

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        self._markers: OrderedDict[str, int] = OrderedDict()
        self._events: deque[InFlightEvent] = deque()
        self._next = 0

    def __len__(self) -> int:
        return len(self._markers)

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def __iter__(self) -> Iterator[str]:
        return iter(self._markers)

    def events(self) -> list[ClusterEvent]:
        """All events that are kept, oldest first."""
        return [entry.event for entry in self._events]

    def begin(self, uid: str) -> None:
        """Set the pod's marker."""
        self._markers[uid] = self._next
        self._metrics.in_flight_events(POD_POPPED, 1)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for all pods that are in flight; without any there is nothing to do."""
        if not self._markers:
            return
        self._events.append(InFlightEvent(self._next, event, old, new))
        self._next += 1
        self._metrics.in_flight_events(event.label, 1)

    def events_for(self, uid: str) -> list[InFlightEvent] | None:
        """The events since the pod's marker, oldest first; None where the pod is not in flight."""
        marker = self._markers.get(uid)
        if marker is None:
            return None
        missed: list[InFlightEvent] = []
        for entry in reversed(self._events):
            if entry.number < marker:
                break
            missed.append(entry)
        missed.reverse()
        return missed

    def done(self, uid: str) -> None:
        """Take the pod's marker away and drop what no marker needs; a pod not in flight is no matter."""
        if self._markers.pop(uid, None) is None:
            return
        self._metrics.in_flight_events(POD_POPPED, -1)
        oldest = next(iter(self._markers.values()), self._next)
        while self._events and self._events[0].number < oldest:
            self._metrics.in_flight_events(self._events.popleft().event.label, -1)
