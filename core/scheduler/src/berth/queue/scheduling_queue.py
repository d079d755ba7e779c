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

Source: pkg/scheduler/backend/queue/scheduling_queue.go PriorityQueue (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from berth.framework.clock import Clock
from berth.framework.cluster_event import FORCE_ACTIVATE, LABEL_POP_FROM_BACKOFF, ClusterEvent
from berth.framework.mirrors.group_trees import GroupTrees
from berth.framework.ports.background import Background
from berth.framework.queueing.object_events import (
    UNSPLIT,
    UnassignedPodEvents,
    only_says_why,
    pod_events,
)
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo, SortKey
from berth.framework.status import failed
from berth.objects.pods.pod import Pod
from berth.queue.gating import Gating
from berth.queue.moves.async_pre_enqueue import AsyncPreEnqueue, Verdicts
from berth.queue.moves.event_moves import EventMoves, LeavesOut, PodPredicate
from berth.queue.moves.failed_attempts import FailedAttempts
from berth.queue.moves.flushes import Flushes, StillGated
from berth.queue.moves.gate_answers import GateAnswers
from berth.queue.moves.queued_groups import QueuedGroups
from berth.queue.pools.backoff_queue import BackoffPolicy
from berth.queue.pools.in_flight import InFlight, InFlightEvent
from berth.queue.pools.nominator import PodLister
from berth.queue.pools.queue_order import Less, queue_order
from berth.queue.pools.record_heap import Order, ShardOf, whole
from berth.queue.queue_contents import QueueContents
from berth.queue.queue_metrics import QueueMetrics, count_rejected
from berth.queue.recently_gated import RecentlyGated
from berth.queue.requeueing.hint_questions import HintAsker, HintQuestion, HintQuestions, queue_all
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.requeueing.requeue_strategy import RequeueStrategies
from berth.queue.sort_keys import SortKeys
from berth.queue.sub_queues import ACTIVE, SubQueues
from berth.snapshot.pod_group_states import group_of

log = logging.getLogger(__name__)


WaitSeconds = Callable[[Pod, Callable[[int], Iterable[Pod]]], float]
"""How much longer a pod has to wait because of its namespace, and of so many pods that come next."""


def at_once(pod: Pod, upcoming: Callable[[int], Iterable[Pod]]) -> float:
    """No pod has to wait."""
    del pod, upcoming
    return 0.0


def _unsaid(records: Sequence[QueuedPodInfo]) -> None:
    """Nothing is done for pods that are still gated."""
    del records


class SchedulingQueue(QueueContents):
    """Pods by priority, with their backoffs, rejections, gates and nominations.

    `less` (and `sort_key`, if its plugin has one) come from the QueueSort plugin of the first profile.
    `on_ready` is called after any call that put a pod into activeQ or backoffQ, or brought the next flush
    forward, and by `close()`.
    `ask_hints` asks sidecars. `leaves_out` says of an object that comes which records it
    cannot help, so that no plugin is asked about them. `shard_of` says with which shard a record is popped.
    `wait_seconds` says of a pod that is next how much longer it has to wait, because of its namespace.
    `still_gated` gets pods that plugins have kept out for long; `nominates_gated`, a rule of releases,
    says whether the nodes that gated pods are nominated to are kept for them.
    With `groups`, the pod groups that the watch has shown, the pods of a group wait and are popped as one.
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
        metrics: QueueMetrics | None = None,
        pop_from_backoff: bool = True,
        generic_workload: bool = False,
        groups: GroupTrees | None = None,
        background: Background | None = None,
        on_ready: Callable[[], None] | None = None,
        ask_hints: HintAsker = queue_all,
        leaves_out: LeavesOut | None = None,
        wait_seconds: WaitSeconds = at_once,
        shard_of: ShardOf = whole,
        unassigned_events: UnassignedPodEvents = UNSPLIT,
        still_gated: StillGated = _unsaid,
        nominates_gated: bool = False,
    ) -> None:
        self._own_events = unassigned_events.own
        self._pod_added = unassigned_events.add.label
        self._unknown_updated = unassigned_events.unknown_updated.label
        self._on_ready = on_ready
        self._ask_hints = ask_hints
        self._leaves_out = leaves_out
        self.scheduling_cycle = 0
        self.closed = False
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._metrics = metrics or QueueMetrics()
        self._pop_from_backoff = pop_from_backoff
        self._generic_workload = generic_workload
        self._strategies = RequeueStrategies(profiles, clock, self._metrics)
        self._in_flight = InFlight(self._metrics)
        self._async_pre_enqueue = AsyncPreEnqueue(background, self._gates_answered)
        self._sort_keys = SortKeys(profiles)
        self._recently_gated = RecentlyGated(clock, partial(self._notify, True))
        gating = self._new_gating(profiles)
        self._sub_queues = SubQueues(
            queue_order(less, sort_key),
            BackoffPolicy(initial_backoff_seconds, max_backoff_seconds, windowed=pop_from_backoff),
            gating,
            clock=clock,
            pod_lister=pod_lister,
            metrics=self._metrics,
            pop_from_backoff=pop_from_backoff,
            shard_of=shard_of,
            events=unassigned_events,
            nominates_gated=nominates_gated,
        )
        self.nominator = self._sub_queues.nominator
        """Who was promised which node."""
        self.groups = (
            None
            if groups is None
            else QueuedGroups(
                self._sub_queues,
                groups,
                clock,
                self._notify,
                pod_added=self._pod_added,
                recently=self._recently_gated,
            )
        )
        """The groups that wait as one; None where each pod waits alone."""
        self._gates = GateAnswers(self._sub_queues, gating, self._strategies)
        self._failed = FailedAttempts(
            self._sub_queues, self._strategies, self._in_flight, clock, self._metrics
        )
        self._moves = EventMoves(self._sub_queues, self._strategies, self._in_flight, self._async_pre_enqueue)
        self._flushes = Flushes(
            self._sub_queues,
            self._moves,
            clock,
            max_in_unschedulable_seconds=max_in_unschedulable_seconds,
            still_gated=still_gated,
            groups=self.groups,
            recently=self._recently_gated,
        )

    def _new_gating(self, profiles: Mapping[str, QueueProfile]) -> Gating:
        return Gating(
            profiles,
            self._strategies.gate_events_of,
            self._clock,
            self._metrics,
            ask=self._async_pre_enqueue.ask,
            keys=self._sort_keys,
            recently=self._recently_gated,
        )

    # Pods come, change and go.

    def add(self, pod: Pod) -> None:
        """Take in a new pod."""
        record = QueuedPodInfo(pod, self._clock.monotonic())
        if self.groups is None or group_of(pod) is None:
            self._notify(self._sub_queues.move_to_active(record, self._pod_added))
        else:
            self.nominator.add(pod)
            self.groups.add(record)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Take over a new version of a pod; an unknown one is taken in."""
        old = old or new
        if new.uid in self._in_flight:
            for event in pod_events(old, new, unassigned=self._own_events):
                self._in_flight.record(event, old, new)
            return
        sub_queues = self._sub_queues
        record = self._record(new.key)
        if record is None:
            self._add_unknown(new)
            return
        self._renew(record, old, new)
        entity = record.group or record
        if sub_queues.restore(entity):
            self._gates.check_key(entity)
        elif entity.key in sub_queues.pool:
            sub_queues.pool.put(entity.key, entity)
            # What was written of a gated pod, as `still_gated` has it, must not bring it back.
            if not (entity.gated and only_says_why(old, new)):
                self._notify(self._moved_by_own_update(entity, old, new))

    def _add_unknown(self, pod: Pod) -> None:
        if self.groups is None or group_of(pod) is None:
            record = QueuedPodInfo(pod, self._clock.monotonic())
            self._notify(self._sub_queues.move_to_active(record, self._unknown_updated))
        else:
            self.add(pod)

    def delete(self, pod: Pod) -> None:
        """Take a pod out, wherever it waits; one in flight stays in flight."""
        self.nominator.delete(pod)
        self._sort_keys.forget(pod)
        self._recently_gated.forget(pod.key)
        record = self._sub_queues.remove(pod.key)
        if record is None and self.groups is not None:
            record = self.groups.remove(pod)
        if record is not None:
            self._async_pre_enqueue.forget(record.pod)
            count_rejected(self._metrics, record, -1)

    def _renew(self, record: QueuedPodInfo, old: Pod, new: Pod) -> None:
        record.pod, record.gates_passed = new, frozenset()
        if record.group is not None:
            record.group.renew(record)
        self.nominator.update(old, new)

    def _moved_by_own_update(self, record: QueuedPodInfo, old: Pod, new: Pod) -> bool:
        asked = HintQuestions()
        for event in pod_events(old, new, unassigned=self._own_events):
            strategy = self._strategies.worth(record, event, old, new, asked)
            if self._sub_queues.requeue(record, strategy, event.label):
                return True
        self._ask(asked)
        return False

    # The scheduling cycle takes and returns.

    def pop(self, shard: str = "") -> QueuedPodInfo | None:
        """The shard's next pod or group to schedule, in flight from now on; None where none is ready.

        A pod is in flight until `done`, a group until all of its pods are, and until `groups.ended`.
        """
        while (record := self._take(shard)) is not None:
            seconds = self._wait_seconds(record.pod, self.upcoming)
            if seconds:
                self._sub_queues.put_off(record, seconds)
            elif self._begin(record):
                return record
        return None

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """That very pod, whatever its backoff; None where it does not wait or is gated."""
        self._sub_queues.activate(pod.key)
        record = self._sub_queues.active.remove(pod.key)
        return record if record is not None and self._begin(record) else None

    def _take(self, shard: str) -> QueuedPodInfo | None:
        record = self._sub_queues.active.pop(shard)
        if record is None and self._pop_from_backoff:
            record = self._sub_queues.backoff.normal.pop(shard)
            if record is not None:
                self._sub_queues.count_in(record, ACTIVE, LABEL_POP_FROM_BACKOFF)
        return record

    def _begin(self, record: QueuedPodInfo) -> bool:
        if isinstance(record, QueuedGroupInfo):
            return self._begin_group(record)
        if not self._take_off(record):
            return False
        self.scheduling_cycle += 1
        return True

    def _begin_group(self, group: QueuedGroupInfo) -> bool:
        assert self.groups is not None, "groups are queued"
        group.attempts += 1
        self.groups.begun(group)
        group.members[:] = [member for member in group.members if self._take_off(member)]
        if not group.members:
            self.groups.ended(group, failed("all of its pods are being scheduled already"))
            return False
        self.scheduling_cycle += 1
        return True

    def _take_off(self, record: QueuedPodInfo) -> bool:
        """Let the pod be in flight; False where it is already."""
        record.attempts += 1
        self.nominator.touch(record.pod)
        if record.pod.uid in self._in_flight:
            log.error(
                "the same pod is tracked in multiple places in the scheduler pod=%s uid=%s",
                record.pod.key,
                record.pod.uid,
            )
            return False
        self._in_flight.begin(record.pod.uid)
        count_rejected(self._metrics, record, -1)
        return True

    def add_unschedulable_if_not_present(self, record: QueuedPodInfo) -> None:
        """Take a pod back after a failed attempt; it is removed from the in-flight pods in every case.

        The record's rejectors are those of this attempt: none means that something broke.

        Raises: AlreadyQueuedError.
        """
        if self.groups is not None and group_of(record.pod) is not None:
            self._take_back_to_group(self.groups, record)
            return
        asked = HintQuestions()
        try:
            queued = self._failed.take_back(record, asked, rests=self._grouped(record.pod))
        finally:
            self.nominator.touch(record.pod)
            self.done(record.pod.uid)
        self._notify(queued)
        self._ask(asked)

    def _take_back_to_group(self, groups: QueuedGroups, record: QueuedPodInfo) -> None:
        try:
            self._failed.count(record)
        finally:
            self.nominator.touch(record.pod)
            self.done(record.pod.uid)
        # What came during the attempt is no matter: a group that failed backs off, and is tried again.
        groups.add(record)

    def _grouped(self, pod: Pod) -> bool:
        return self._generic_workload and pod.spec.scheduling_group is not None

    def done(self, uid: str) -> None:
        """The pod of that UID is not in flight any longer; it need not have been."""
        self._in_flight.done(uid)

    # Events, requests and time move pods.

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, predicate: PodPredicate | None = None
    ) -> None:
        """Move the rejected pods on that the event may have made schedulable.

        Cost: O(groups), the hints of the plugins that rejected the pods in groups the event may help, once
            for each kind of pod, and O(1) for each pod that is moved.
        """
        if self._moves.idle or not self._strategies.of_interest(event):
            return
        asked = HintQuestions()
        candidates = self._moves.candidates(
            event, old, new, predicate, leaves_out=self._leaves_out, asked=asked
        )
        self._notify(self._moves.move(candidates, event, old, new, asked))
        self._ask(asked)

    def _ask(self, questions: HintQuestions) -> None:
        if questions:
            self._ask_hints([*questions], self.hints_answered)

    def hints_answered(self, queue: Iterable[HintQuestion]) -> None:
        """Move the pods on for which a sidecar said Queue, unless another attempt began since.

        An attempt that began after the event has seen what the event brought.
        """
        moved = False
        for question in queue:
            moved |= self._moves.answered(question)
        self._notify(moved)

    def take_sort_keys(self, keys: Mapping[str, SortKey]) -> int:
        """Sort these pods, by UID, by these keys from now on; answers how many of them are not known.

        Cost: O(log n) for each pod whose key is another one.
        """
        unknown = 0
        for uid, key in keys.items():
            record = self._sort_keys.get(uid)
            if record is None:
                unknown += 1
            elif record.sort_key != key:
                record.sort_key = key
                self._sub_queues.restore(record.group or record)
        return unknown

    def check_gates_again(self, profile: str) -> None:
        """Ask the gates of a profile about pods that are queued already: one of them was not there before.

        Pods in flight go on: their filters are asked.
        """
        self._gates.check_again(profile)

    def _gates_answered(
        self, record: QueuedPodInfo, verdicts: Verdicts, missed: Iterable[InFlightEvent]
    ) -> None:
        asked = HintQuestions()
        self._notify(self._gates.take(record, verdicts, missed, asked))
        self._ask(asked)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make these pods ready, whatever their backoff; one in flight is retried soon if it fails.

        A pod that waits with its group makes the group ready.
        """
        moved = False
        for pod in pods:
            if pod.uid in self._in_flight and self._grouped(pod):
                continue  # whatever happens meanwhile, it backs off if it fails
            record = self._sub_queues.grouped.get(pod.key)
            entity = record.group if record is not None else None
            activated = self._sub_queues.activate(pod.key if entity is None else entity.key)
            if not activated and pod.uid in self._in_flight:
                self._in_flight.record(FORCE_ACTIVATE, None, pod)
            moved |= activated
        self._notify(moved)

    def release(self, namespaces: AbstractSet[str]) -> None:
        """Let pods of these namespaces come back that were held back although the budget was at fault."""
        self._sub_queues.backoff.release(namespaces)
        self._notify(True)

    def next_flush_time(self) -> float:
        """When `flush()` has something to do at the earliest, in seconds of the monotonic clock.

        A pod that starts to back off can bring it forward; `on_ready` is called then.
        """
        return self._flushes.next_time()

    def flush(self) -> None:
        """Do the flushes that are due."""
        self.flush_backoff()
        self._flushes.newly_gated()
        if self._flushes.leftovers_due():
            self.flush_unschedulable_leftovers()

    def flush_backoff(self) -> None:
        """Make the pods ready that have waited enough."""
        self._notify(self._flushes.backoff())

    def flush_unschedulable_leftovers(self) -> None:
        """Move the pods on that no event has helped for too long; gated ones stay."""
        self._notify(self._flushes.leftovers())

    def close(self) -> None:
        """End it: nothing is in flight any longer, and waiting poppers are woken."""
        self.closed = True
        for uid in list(self._in_flight):
            self.done(uid)
        self._notify(True)

    def _notify(self, moved: bool) -> None:
        if moved and self._on_ready is not None:
            self._on_ready()
