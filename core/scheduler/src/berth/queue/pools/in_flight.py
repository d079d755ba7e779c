"""Pods that were popped and are not done, and the events that each of them has missed since.

    pop --> marker | event | event | marker of another pod | event ...
    done: the marker goes, and the events before the first marker left
    too many, or too large: the oldest events are forgotten, and stand for anything from then on

A pod may be in flight for minutes, at Permit, while users cause events as often as they like. kube-scheduler
keeps them all; here a pod that missed forgotten events is tried again, which is what any one of them can do
at most.

Source: pkg/scheduler/backend/queue/active_queue.go clusterEventsForPod, done (Kubernetes v1.36).
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.queue.queue_metrics import QueueMetrics

POD_POPPED = "PodPopped"
EVENTS_FORGOTTEN = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "EventsForgotten")
MAX_EVENTS = 16_384
MAX_WRITTEN_BYTES = 8 << 20
"""Of the objects that kept events came with, as JSON; in memory they are several times as large."""
WEIGHED_AT_ONCE = 32

encode = msgspec.json.Encoder(enc_hook=str).encode


class InFlightEvent(NamedTuple):
    """An event with the objects it came with, numbered in order of arrival."""

    number: int
    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Markers by pod UID over a list of events.

    A marker is the number that the first event after it gets. Cost: begin, record and done O(1) amortised;
    events are weighed only once there are `WEIGHED_AT_ONCE` of them, which few attempts live to see.
    """

    __slots__ = ("_events", "_forgotten", "_markers", "_metrics", "_next", "_weighed", "_weights")

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        self._markers: OrderedDict[str, int] = OrderedDict()
        self._events: deque[InFlightEvent] = deque()
        self._next = 0
        self._forgotten = 0
        """The number of the first event that is not forgotten."""
        self._weighed = 0
        self._weights: deque[tuple[int, int]] = deque()
        """What events up to a number, and after the one before, weigh together."""

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
        if self._next - max(self._weighed, self._events[0].number) >= WEIGHED_AT_ONCE:
            self._weigh()

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
        if marker < self._forgotten:
            missed.append(InFlightEvent(marker, EVENTS_FORGOTTEN, None, None))
        missed.reverse()
        return missed

    def done(self, uid: str) -> None:
        """Take the pod's marker away and drop what no marker needs; a pod not in flight is no matter."""
        if self._markers.pop(uid, None) is None:
            return
        self._metrics.in_flight_events(POD_POPPED, -1)
        self._drop_before(next(iter(self._markers.values()), self._next))

    def _drop_before(self, number: int) -> None:
        while self._events and self._events[0].number < number:
            self._metrics.in_flight_events(self._events.popleft().event.label, -1)
        while self._weights and self._weights[0][0] <= number:
            self._weights.popleft()

    def _weigh(self) -> None:
        """Weigh the events that are new, and forget the older half where all are too many or too heavy."""
        new = takewhile(lambda entry: entry.number >= self._weighed, reversed(self._events))
        self._weights.append((self._next, sum(map(_written_bytes, new))))
        self._weighed = self._next
        heavy = sum(weight for _, weight in self._weights) > MAX_WRITTEN_BYTES
        if heavy or len(self._events) > MAX_EVENTS:
            self._forgotten = self._events[len(self._events) // 2].number
            self._drop_before(self._forgotten)


def _written_bytes(entry: InFlightEvent) -> int:
    """How large the event's object is; the one before it mostly came with an earlier event."""
    about = entry.old if entry.new is None else entry.new
    return len(encode(about))
