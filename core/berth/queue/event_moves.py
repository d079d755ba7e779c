"""Which waiting pods an event moves on.

    event --registrations--> groups of the pool --one look for all, or hints--> pods to move
                                                          |
                                                          +-- ASK --> asked elsewhere --> `answered`

Events are kept for pods in flight and for pods whose gates are being asked: what those will be told may be
older than the event.

Source: spec/core.md 2.8, 2.9.
"""

from collections.abc import Callable, Iterable
from typing import Any

from berth.framework.cluster_event import ClusterEvent, QueueingHint
from berth.framework.queued_pod import QueuedPodInfo
from berth.objects.pod import Pod
from berth.queue.asked_gates import AskedGates
from berth.queue.hint_questions import HintQuestion
from berth.queue.in_flight import InFlight
from berth.queue.places import Places
from berth.queue.requeue_strategy import RequeueStrategies, Strategy
from berth.queue.unschedulable_pods import Group

PodPredicate = Callable[[Pod], bool]
LeavesOut = Callable[[Any], Callable[[Group], bool] | None]


class EventMoves:
    """Moves records out of the pool; each method answers whether one is in activeQ or backoffQ now."""

    def __init__(
        self,
        places: Places,
        strategies: RequeueStrategies,
        in_flight: InFlight,
        asked_gates: AskedGates,
    ) -> None:
        self._places = places
        self._strategies = strategies
        self._in_flight = in_flight
        self._asked_gates = asked_gates

    def candidates(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        predicate: PodPredicate | None,
        *,
        leaves_out: LeavesOut | None,
        asked: list[HintQuestion],
    ) -> list[QueuedPodInfo]:
        """The pods to look at one by one; where one look does for a group, its questions are in `asked`."""
        found: list[QueuedPodInfo] = []
        left_out = leaves_out(new) if leaves_out is not None else None
        for group, records in self._places.pool.groups():
            if left_out is not None and left_out(group):
                continue
            gating_events = next(iter(records.values())).gating_plugin_events
            if not self._strategies.may_help(group, gating_events, event):
                continue
            members = [r for r in records.values() if predicate is None or predicate(r.pod)]
            hint = self._strategies.hint_for_all(group, event, old, new)
            if hint is None:
                found += members
            elif hint is QueueingHint.ASK:
                (plugin,) = group.rejectors
                asked += [HintQuestion(plugin, event, old, new, r, r.attempts) for r in members]
        return found

    def move(
        self,
        candidates: Iterable[QueuedPodInfo],
        event: ClusterEvent,
        old: Any,
        new: Any,
        asked: list[HintQuestion],
    ) -> bool:
        """Move those for which the event is worth it; what plugins elsewhere are to say is in `asked`."""
        moved = False
        for record in candidates:
            strategy = self._strategies.worth(record, event, old, new, asked)
            if strategy is not Strategy.SKIP:
                self._places.pool.remove(record.pod.key)
                moved |= self._places.requeue(record, strategy, event.label)
        self._in_flight.record(event, old, new)
        self._asked_gates.record(event, old, new)
        return moved

    def answered(self, question: HintQuestion) -> bool:
        """Move a pod on for which a plugin elsewhere said Queue, unless another attempt began since."""
        if not question.stands:
            return False
        places, record, event = self._places, question.record, question.event.label
        key = record.pod.key
        immediately = question.plugin in record.pending_plugins
        if places.pool.get(key) is record:
            strategy = Strategy.IMMEDIATELY if immediately else Strategy.AFTER_BACKOFF
            places.pool.remove(key)
            return places.requeue(record, strategy, event)
        if immediately and places.backoff.get(key) is record and not places.held(record):
            places.backoff.remove(key)
            return places.move_to_active(record, event, from_backoff=True)
        return False
