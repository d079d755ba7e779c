"""Which waiting pods an event moves on.

    event --registrations--> groups of the pool --one look for all, or hints for each kind--> pods to move
                                                          |
                                                          +-- ASK --> sidecars --> `answered`

Events are kept for pods in flight and for pods whose gates are being asked: their next answers may be
older than the event.

Source: pkg/scheduler/backend/queue/scheduling_queue.go movePodsToActiveOrBackoffQueue (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from berth.framework.cluster_event import ClusterEvent, QueueingHint
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.objects.pods.pod import Pod
from berth.queue.moves.async_pre_enqueue import AsyncPreEnqueue
from berth.queue.pools.in_flight import InFlight
from berth.queue.pools.unschedulable_pods import Group, Kinds
from berth.queue.requeueing.hint_questions import HintQuestion, HintQuestions
from berth.queue.requeueing.requeue_strategy import RequeueStrategies, RequeueStrategy
from berth.queue.sub_queues import SubQueues

PodPredicate = Callable[[Pod], bool]
LeavesOut = Callable[[Any], Callable[[Group], bool] | None]
Alike = Sequence[QueuedPodInfo]
"""Records for which an event means the same, so that plugins are asked about the first of them."""


class EventMoves:
    """Moves records out of the pool; each method answers whether one is in activeQ or backoffQ now."""

    def __init__(
        self,
        sub_queues: SubQueues,
        strategies: RequeueStrategies,
        in_flight: InFlight,
        async_pre_enqueue: AsyncPreEnqueue,
    ) -> None:
        self._sub_queues = sub_queues
        self._strategies = strategies
        self._in_flight = in_flight
        self._async_pre_enqueue = async_pre_enqueue

    @property
    def idle(self) -> bool:
        """Whether no event can matter: no pod waits for one, and none is kept for later."""
        return not (self._sub_queues.pool or self._in_flight or self._async_pre_enqueue)

    def candidates(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        predicate: PodPredicate | None,
        *,
        leaves_out: LeavesOut | None,
        asked: HintQuestions,
    ) -> list[Alike]:
        """The pods to look at, those together that are alike.

        Where one look does for a group, its questions are in `asked`.
        """
        found: list[Alike] = []
        left_out = leaves_out(new) if leaves_out is not None else None
        about = old if new is None else new
        own_key = about.key if isinstance(about, Pod) else ""
        for group, kinds in self._sub_queues.pool.groups():
            if left_out is not None and left_out(group):
                continue
            gating_events = next(_every(kinds)).gating_plugin_events
            if not self._strategies.may_help(group, gating_events, event):
                continue
            hint = self._strategies.hint_for_all(group, event, old, new)
            concerned = self._strategies.concerned(group, event, old, new) if hint is None else None
            among = None if concerned is None else self._sub_queues.pool.among(group, concerned)
            if among is not None:
                found += [(record,) for record in among if predicate is None or predicate(record.pod)]
            elif hint is None:
                apart = self._strategies.distinguishes_pods(group, event)
                found += _alone(kinds, predicate) if apart else _alike(kinds, predicate, own_key)
            elif hint is QueueingHint.ASK:
                (plugin,) = group.rejectors
                entities = [record for records in kinds.values() for record in records.values()]
                if predicate is not None:
                    entities = [record for record in entities if predicate(record.pod)]
                asked.add(plugin, event, old, new, _pods_of(entities))
        return found

    def move(
        self,
        candidates: Iterable[Alike],
        event: ClusterEvent,
        old: Any,
        new: Any,
        asked: HintQuestions,
    ) -> bool:
        """Move those for which the event is worth it; what sidecars are to say is in `asked`."""
        moved = False
        for records in candidates:
            strategy = self._strategies.worth_to_all(records, event, old, new, asked)
            if strategy is not RequeueStrategy.SKIP:
                moved |= self._sub_queues.move_on(records, strategy, event.label)
        self._in_flight.record(event, old, new)
        self._async_pre_enqueue.record(event, old, new)
        return moved

    def answered(self, question: HintQuestion) -> bool:
        """Move the pods on for which a sidecar said Queue, those that no other attempt began for since."""
        sub_queues, plugin, event = self._sub_queues, question.plugin, question.event.label
        hurried: list[QueuedPodInfo] = []
        others: list[QueuedPodInfo] = []
        for record in question.standing():
            entity = record.group or record
            (hurried if plugin in record.pending_plugins else others).append(entity)
        moved = sub_queues.end_backoff(hurried, event)
        moved |= sub_queues.move_on(hurried, RequeueStrategy.IMMEDIATELY, event)
        moved |= sub_queues.move_on(others, RequeueStrategy.AFTER_BACKOFF, event)
        return moved


def _pods_of(entities: Iterable[QueuedPodInfo]) -> list[QueuedPodInfo]:
    """The records of single pods, and those of the groups' members."""
    return [pod for one in entities for pod in (one.members if isinstance(one, QueuedGroupInfo) else (one,))]


def _every(kinds: Kinds) -> Iterator[QueuedPodInfo]:
    return (record for records in kinds.values() for record in records.values())


def _alone(kinds: Kinds, predicate: PodPredicate | None) -> list[Alike]:
    return [(record,) for record in _every(kinds) if predicate is None or predicate(record.pod)]


def _alike(kinds: Kinds, predicate: PodPredicate | None, own_key: str) -> Iterator[Alike]:
    """The records by kind; that of the pod which the event is about stands alone."""
    for records in kinds.values():
        own = records.get(own_key)
        rest = list(records.values()) if own is None else [r for r in records.values() if r is not own]
        for members in (rest, [own] if own is not None else []):
            wanted = members if predicate is None else [r for r in members if predicate(r.pod)]
            if wanted:
                yield wanted
