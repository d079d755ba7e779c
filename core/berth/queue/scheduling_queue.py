"""The scheduling queue: every pod that waits to be scheduled, popped one at a time.

    add, update --> activeQ --pop--> in flight --done--> (bound, or gone)
                       ^                 |
                       |                 | add_unschedulable_if_not_present
                    backoffQ <-----------+
                       ^                 |
                       +---- pool <------+    (events, flushes and activate move pods on)

One task owns the queue: its operations are plain calls that run to their end, so that no event falls between
a plugin's "no" and the pod's way into the pool. Hints and PreEnqueue plugins must not call back into it.

Called by: event handlers, the scheduling and binding cycles, and a driver that waits for `on_ready` or for
`next_flush_time()`, whatever comes first, and then calls `flush()` and `pop()`.

Source: spec/core.md 2.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from math import floor
from typing import Any, NamedTuple

from berth.framework.background import Background
from berth.framework.clock import Clock
from berth.framework.cluster_event import (
    FORCE_ACTIVATE,
    LABEL_BACKOFF_COMPLETE,
    LABEL_POP_FROM_BACKOFF,
    LABEL_SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    QueueingHint,
)
from berth.framework.object_events import pod_events
from berth.framework.queued_pod import QueuedPodInfo
from berth.objects.pod import Pod
from berth.queue.asked_gates import AskedGates, Verdicts
from berth.queue.backoff_queue import Backoff
from berth.queue.errors import AlreadyQueuedError
from berth.queue.gating import Gating
from berth.queue.hint_questions import HintAsker, HintQuestion
from berth.queue.in_flight import InFlight, InFlightEvent
from berth.queue.nominator import Nominator, PodLister
from berth.queue.places import ACTIVE, POD_ADD, POD_UPDATE, Places
from berth.queue.queue_metrics import NoMetrics, QueueMetrics
from berth.queue.queue_order import Less, queue_order
from berth.queue.queue_profile import QueueProfile
from berth.queue.record_heap import Order
from berth.queue.requeue_strategy import RequeueStrategies, Strategy, still_open
from berth.queue.unschedulable_pods import Group

log = logging.getLogger(__name__)

LEFTOVER_FLUSH_SECONDS = 30.0
LABEL_GATES_ANSWERED = "GatesAnswered"
LABEL_NEW_GATE = "NewGate"

PodPredicate = Callable[[Pod], bool]
LeavesOut = Callable[[Any], Callable[[Group], bool] | None]


class QueueSizes(NamedTuple):
    """How many pods wait where: the values of pending_pods."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


def unsigned(pod: Pod) -> Hashable | None:
    """No signature: every pod is a question of its own."""
    del pod
    return None


class SchedulingQueue:
    """Pods by priority, with their backoffs, rejections, gates and nominations.

    `less` (and `sort_key`, if its plugin has one) come from the QueueSort plugin of the first profile.
    `on_ready` is called after any call that put a pod into activeQ or backoffQ, and by `close()`.
    """

    def __init__(
        self,
        less: Less,
        profiles: Mapping[str, QueueProfile],
        clock: Clock,
        *,
        pod_lister: PodLister,
        sort_key: Order | None = None,
        initial_backoff_seconds: int = 1,
        max_backoff_seconds: int = 10,
        max_in_unschedulable_seconds: float = 300.0,
        sign: Callable[[Pod], Hashable | None] = unsigned,
        metrics: QueueMetrics | None = None,
        pop_from_backoff: bool = True,
        generic_workload: bool = False,
        background: Background | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self.on_ready = on_ready
        self.ask_hints: HintAsker = self.hints_answered
        """Asks plugins in other processes; until somebody can, the answer is Queue."""
        self.leaves_out: LeavesOut | None = None
        """Says of an object that comes which records it cannot help, so that nobody asks about them."""
        self.scheduling_cycle = 0
        self.closed = False
        self._clock = clock
        self._sign = sign
        self._metrics = metrics or NoMetrics()
        self._pop_from_backoff = pop_from_backoff
        self._generic_workload = generic_workload
        self._max_in_unschedulable_seconds = max_in_unschedulable_seconds
        self._next_leftover_flush = clock.now()
        self._strategies = RequeueStrategies(profiles, clock, self._metrics)
        self._in_flight = InFlight(self._metrics)
        self._asked_gates = AskedGates(background, self._gates_answered)
        self._gating = Gating(
            profiles, self._strategies.events_of, clock, self._metrics, self._asked_gates.ask
        )
        self._places = Places(
            queue_order(less, sort_key),
            Backoff(initial_backoff_seconds, max_backoff_seconds, windowed=pop_from_backoff),
            self._gating,
            clock=clock,
            pod_lister=pod_lister,
            metrics=self._metrics,
            pop_from_backoff=pop_from_backoff,
        )

    # What is in it.

    @property
    def nominator(self) -> Nominator:
        """Who was promised which node."""
        return self._places.nominator

    @property
    def ready(self) -> bool:
        """Whether `pop()` has a pod to give."""
        places = self._places
        return bool(places.active) or (self._pop_from_backoff and bool(places.backoff.normal))

    def sizes(self) -> QueueSizes:
        """How many pods wait where."""
        places = self._places
        gated = places.pool.gated_count()
        return QueueSizes(len(places.active), len(places.backoff), len(places.pool) - gated, gated)

    def pending_pods(self) -> tuple[list[Pod], str]:
        """All waiting pods, and a summary of their numbers."""
        places = self._places
        pods = [record.pod for place in (places.active, places.backoff, places.pool) for record in place]
        summary = (
            f"activeQ:{len(places.active)}; backoffQ:{len(places.backoff)}; "
            f"unschedulablePods:{len(places.pool)}"
        )
        return pods, summary

    def in_flight(self) -> Iterator[str]:
        """The UIDs of the pods that were popped and are not done, in the order they were popped."""
        return iter(self._in_flight)

    def record(self, namespace: str, name: str) -> QueuedPodInfo | None:
        """The record of a waiting pod, None where it does not wait."""
        key = f"{namespace}/{name}" if namespace else name
        places = self._places
        return places.active.get(key) or places.backoff.get(key) or places.pool.get(key)

    # Pods come, change and go.

    def add(self, pod: Pod) -> None:
        """Take in a new pod."""
        self._notify(self._places.move_to_active(self._new_record(pod), POD_ADD))

    def update(self, old: Pod | None, new: Pod) -> None:
        """Take over a new version of a pod; an unknown one is taken in."""
        old = old or new
        if new.uid in self._in_flight:
            for event in pod_events(old, new):
                self._in_flight.record(event, old, new)
            return
        key = new.key
        places = self._places
        if (record := places.active.get(key)) is not None:
            self._renew(record, old, new)
            places.active.put(key, record)
        elif (record := places.backoff.get(key)) is not None:
            self._renew(record, old, new)
            places.backoff.restore(key, record)
        elif (record := places.pool.get(key)) is not None:
            self._renew(record, old, new)
            self._notify(self._moved_by_own_update(record, old, new))
        else:
            self._notify(places.move_to_active(self._new_record(new), POD_UPDATE))

    def delete(self, pod: Pod) -> None:
        """Take a pod out, wherever it waits; one in flight stays in flight."""
        self.nominator.delete(pod)
        key = pod.key
        places = self._places
        record = places.active.remove(key) or places.backoff.remove(key) or places.pool.remove(key)
        if record is not None:
            self._asked_gates.forget(record.pod)
            self._count_rejected(record, -1)

    def _new_record(self, pod: Pod) -> QueuedPodInfo:
        return QueuedPodInfo(pod, self._clock.now(), signature=self._sign(pod))

    def _renew(self, record: QueuedPodInfo, old: Pod, new: Pod) -> None:
        record.pod = new
        record.signature = self._sign(new)
        self.nominator.update(old, new)

    def _moved_by_own_update(self, record: QueuedPodInfo, old: Pod, new: Pod) -> bool:
        asked: list[HintQuestion] = []
        for event in pod_events(old, new):
            strategy = self._strategies.worth(record, event, old, new, asked)
            if self._places.requeue(record, strategy, event.label):
                return True
        self._ask(asked)
        return False

    # The scheduling cycle takes and returns.

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to schedule, in flight from now on until `done`; None where none is ready."""
        while (record := self._take()) is not None:
            if self._begin(record):
                return record
        return None

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """That very pod, whatever its backoff; None where it does not wait or is gated."""
        self._activate(pod)
        record = self._places.active.remove(pod.key)
        return record if record is not None and self._begin(record) else None

    def _take(self) -> QueuedPodInfo | None:
        record = self._places.active.pop()
        if record is None and self._pop_from_backoff:
            record = self._places.backoff.normal.pop()
            if record is not None:
                self._metrics.pod_incoming(ACTIVE, LABEL_POP_FROM_BACKOFF)
        return record

    def _begin(self, record: QueuedPodInfo) -> bool:
        record.attempts += 1
        self.nominator.touch(record.pod)
        if record.pod.uid in self._in_flight:
            log.error(
                "the same pod is tracked in multiple places in the scheduler: pod=%s uid=%s",
                record.pod.key,
                record.pod.uid,
            )
            return False
        self._in_flight.begin(record.pod.uid)
        self.scheduling_cycle += 1
        self._count_rejected(record, -1)
        return True

    def add_unschedulable_if_not_present(self, record: QueuedPodInfo) -> None:
        """Take a pod back after a failed attempt; it is done with flying in any case.

        The record's rejectors are those of this attempt: none means that something broke.

        Raises: AlreadyQueuedError.
        """
        try:
            self._refuse_present(record.pod.key)
            self._note_failure(record)
            strategy, asked = self._strategy_after_failure(record)
            queued = self._places.requeue(record, strategy, LABEL_SCHEDULE_ATTEMPT_FAILURE)
        finally:
            self.nominator.touch(record.pod)
            self.done(record.pod.uid)
        self._notify(queued)
        self._ask(asked)

    def _refuse_present(self, key: str) -> None:
        places = self._places
        if key in places.pool:
            raise AlreadyQueuedError(key, "unschedulable")
        if key in places.active:
            raise AlreadyQueuedError(key, "the active")
        if key in places.backoff:
            raise AlreadyQueuedError(key, "the backoff")

    def _note_failure(self, record: QueuedPodInfo) -> None:
        if record.rejectors:
            record.unschedulable_count += 1
            record.consecutive_errors_count = 0
        else:
            record.consecutive_errors_count += 1
        record.rests = self._grouped(record.pod)
        record.timestamp = self._clock.now()
        record.backoff_expiration = None
        record.was_flushed_from_unschedulable = False
        self._count_rejected(record, 1)

    def _grouped(self, pod: Pod) -> bool:
        return self._generic_workload and pod.spec.scheduling_group is not None

    def _strategy_after_failure(self, record: QueuedPodInfo) -> tuple[Strategy, list[HintQuestion]]:
        """What the events mean that came during the attempt, and what is still to be asked about them."""
        if not record.rejectors or record.rests:
            return Strategy.AFTER_BACKOFF, []
        missed = self._in_flight.events_for(record.pod.uid)
        if missed is None:
            log.error("in flight Pod isn't found in the scheduling queue: pod=%s", record.pod.key)
            return Strategy.AFTER_BACKOFF, []
        best = Strategy.SKIP
        asked: list[HintQuestion] = []
        for entry in missed:
            strategy = self._strategies.worth(record, entry.event, entry.old, entry.new, asked)
            if strategy is Strategy.IMMEDIATELY:
                return strategy, []
            if strategy is Strategy.AFTER_BACKOFF:
                best = strategy
                if not record.pending_plugins:
                    break
        return best, still_open(asked, best)

    def done(self, uid: str) -> None:
        """The pod of that UID is not in flight any longer; it need not have been."""
        self._in_flight.done(uid)

    # Events, requests and time move pods.

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, predicate: PodPredicate | None = None
    ) -> None:
        """Move the rejected pods on that the event may have made schedulable.

        Cost: O(groups) plus the hints of the plugins that rejected the pods in groups the event may help.
        """
        if self._strategies.of_interest(event):
            asked: list[HintQuestion] = []
            candidates = self._candidates(event, old, new, predicate, asked)
            self._move(candidates, event, old, new, asked)

    def _candidates(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        predicate: PodPredicate | None,
        asked: list[HintQuestion],
    ) -> list[QueuedPodInfo]:
        """The pods to look at one by one; where one look does for a group, its questions are in `asked`."""
        found: list[QueuedPodInfo] = []
        left_out = self.leaves_out(new) if self.leaves_out is not None else None
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

    def _move(
        self,
        candidates: Iterable[QueuedPodInfo],
        event: ClusterEvent,
        old: Any,
        new: Any,
        asked: list[HintQuestion],
    ) -> None:
        moved = False
        for record in candidates:
            strategy = self._strategies.worth(record, event, old, new, asked)
            if strategy is not Strategy.SKIP:
                self._places.pool.remove(record.pod.key)
                moved |= self._places.requeue(record, strategy, event.label)
        self._in_flight.record(event, old, new)
        self._asked_gates.record(event, old, new)
        self._notify(moved)
        self._ask(asked)

    def _ask(self, questions: list[HintQuestion]) -> None:
        if questions:
            self.ask_hints(questions)

    def hints_answered(self, queue: Iterable[HintQuestion]) -> None:
        """Move the pods on for which a plugin elsewhere said Queue, unless another attempt began since.

        An attempt that began after the event has seen what the event brought.
        """
        moved = False
        for question in queue:
            if question.stands:
                moved |= self._move_answered(question.record, question.plugin, question.event.label)
        self._notify(moved)

    def _move_answered(self, record: QueuedPodInfo, plugin: str, event: str) -> bool:
        places, key = self._places, record.pod.key
        immediately = plugin in record.pending_plugins
        if places.pool.get(key) is record:
            strategy = Strategy.IMMEDIATELY if immediately else Strategy.AFTER_BACKOFF
            places.pool.remove(key)
            return places.requeue(record, strategy, event)
        if immediately and places.backoff.get(key) is record:
            places.backoff.remove(key)
            return places.move_to_active(record, event, from_backoff=True)
        return False

    def check_gates_again(self, profile: str) -> None:
        """Ask the gates of a profile about pods that are queued already: one of them was not there before.

        Pods in flight go on: their filters are asked.
        """
        places = self._places
        queued = [record for place in (places.active, places.backoff) for record in place]
        for record in queued:
            if record.pod.spec.scheduler_name == profile and not self._gating.check(record):
                key = record.pod.key
                places.active.remove(key) or places.backoff.remove(key)
                places.park(record, LABEL_NEW_GATE)

    def _gates_answered(
        self, record: QueuedPodInfo, verdicts: Verdicts, missed: Iterable[InFlightEvent]
    ) -> None:
        """Queue a pod that plugins elsewhere let pass; ask again where an event may have changed a no."""
        key = record.pod.key
        if self._places.pool.get(key) is not record:
            return
        passed = self._gating.settle(record, verdicts)
        self._places.pool.put(key, record)
        asked: list[HintQuestion] = []
        if passed or self._outdated(record, missed, asked):
            self._notify(self._places.requeue(record, Strategy.AFTER_BACKOFF, LABEL_GATES_ANSWERED))
        else:
            self._ask(asked)

    def _outdated(
        self, record: QueuedPodInfo, missed: Iterable[InFlightEvent], asked: list[HintQuestion]
    ) -> bool:
        """Whether one of the events that came while the gate was asked may have changed its answer."""
        gating = record.gating_plugin_events
        return any(
            self._strategies.worth(record, event, old, new, asked) is not Strategy.SKIP
            for _, event, old, new in missed
            if any(registered.matches(event) for registered in gating)
        )

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make these pods ready, whatever their backoff; one in flight is retried soon if it fails."""
        moved = False
        for pod in pods:
            if pod.uid in self._in_flight and self._grouped(pod):
                continue  # whatever happens meanwhile, it backs off if it fails
            activated = self._activate(pod)
            if not activated and pod.uid in self._in_flight:
                self._in_flight.record(FORCE_ACTIVATE, None, pod)
            moved |= activated
        self._notify(moved)

    def _activate(self, pod: Pod) -> bool:
        key = pod.key
        places = self._places
        if (record := places.pool.get(key)) is not None:
            return places.move_to_active(record, FORCE_ACTIVATE.label)
        if (record := places.backoff.remove(key)) is not None:
            return places.move_to_active(record, FORCE_ACTIVATE.label, from_backoff=True)
        return False

    def next_flush_time(self) -> float:
        """When `flush()` has something to do at the earliest, in seconds since the epoch.

        A pod that starts to back off can bring it forward; `on_ready` tells.
        """
        return min(self._next_leftover_flush, self._places.backoff.next_completion())

    def flush(self) -> None:
        """Do the flushes that are due."""
        self.flush_backoff()
        now = self._clock.now()
        if now >= self._next_leftover_flush:
            self._next_leftover_flush += LEFTOVER_FLUSH_SECONDS * (
                1 + floor((now - self._next_leftover_flush) / LEFTOVER_FLUSH_SECONDS)
            )
            self.flush_unschedulable_leftovers()

    def flush_backoff(self) -> None:
        """Make the pods ready that have waited enough."""
        moved = False
        for record in self._places.backoff.pop_completed(self._clock.now()):
            moved |= self._places.move_to_active(record, LABEL_BACKOFF_COMPLETE, from_backoff=True)
        self._notify(moved)

    def flush_unschedulable_leftovers(self) -> None:
        """Move the pods on that no event has helped for too long; gated ones stay."""
        now = self._clock.now()
        limit = self._max_in_unschedulable_seconds
        leftovers = [record for record in self._places.pool if now - record.timestamp > limit]
        for record in leftovers:
            record.was_flushed_from_unschedulable = True
        if leftovers:
            movable = [r for r in leftovers if not r.gated or _matches_timeout(r.gating_plugin_events)]
            self._move(movable, UNSCHEDULABLE_TIMEOUT, None, None, [])

    def close(self) -> None:
        """End it: nothing is in flight any longer, and waiting poppers are woken."""
        self.closed = True
        for uid in list(self._in_flight):
            self.done(uid)
        self._notify(True)

    def _count_rejected(self, record: QueuedPodInfo, change: int) -> None:
        for plugin in record.rejectors:
            self._metrics.rejected_pods(plugin, record.pod.spec.scheduler_name, change)

    def _notify(self, moved: bool) -> None:
        if moved and self.on_ready is not None:
            self.on_ready()


def _matches_timeout(events: Iterable[ClusterEvent]) -> bool:
    return any(event.matches(UNSCHEDULABLE_TIMEOUT) for event in events)
