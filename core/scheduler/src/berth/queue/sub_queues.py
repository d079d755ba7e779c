"""activeQ, backoffQ and the unschedulable pods, for pods and groups as entities, and the moves between them.

                 +--> activeQ --pop--> in flight
    new, moved --+--> backoffQ --(backoff over)--> activeQ
                 +--> pool (rejected or gated) --(event, flush, activate)--> backoffQ, activeQ

Called by: the scheduling queue, which decides; a record is in one place at a time.

Source: pkg/scheduler/backend/queue/scheduling_queue.go moveToActiveQ, moveToBackoffQ (Kubernetes v1.36; of
groups v1.37).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from berth.framework.clock import Clock
from berth.framework.cluster_event import FORCE_ACTIVATE, LABEL_SCHEDULE_ATTEMPT_FAILURE
from berth.framework.mirrors.group_trees import kind_of
from berth.framework.queueing.object_events import UnassignedPodEvents
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.objects.pods.pod import Pod
from berth.queue.gating import Gating
from berth.queue.pools.backoff_queue import BackoffPolicy, BackoffQueue
from berth.queue.pools.nominator import Nominator, PodLister
from berth.queue.pools.record_heap import Order, RecordHeap, ShardOf
from berth.queue.pools.unschedulable_pods import UnschedulablePods
from berth.queue.queue_metrics import QueueMetrics
from berth.queue.requeueing.requeue_strategy import RequeueStrategy

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"

LABEL_PUT_OFF = "NamespaceOverBudget"


class QueuePosition(NamedTuple):
    """Where one record waits: which place, its position in activeQ (0 for none), and until when it backs off.

    Units: seconds of the monotonic clock, 0 where it does not back off.
    """

    place: str
    position: int
    until: float


class QueueSizes(NamedTuple):
    """How many pods wait where: the values of pending_pods."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class SubQueues:
    """activeQ, backoffQ and the pool."""

    def __init__(
        self,
        order: Order,
        backoff: BackoffPolicy,
        gating: Gating,
        *,
        clock: Clock,
        pod_lister: PodLister,
        metrics: QueueMetrics,
        pop_from_backoff: bool,
        shard_of: ShardOf,
        events: UnassignedPodEvents,
        nominates_gated: bool,
    ) -> None:
        self._nominates_gated = nominates_gated
        self._arrivals = events.arrivals
        self.active = RecordHeap(order, shard_of)
        self.backoff = BackoffQueue(order, backoff, shard_of)
        self.pool = UnschedulablePods()
        self.grouped: dict[str, QueuedPodInfo] = {}
        """The records of pods that wait with their groups, or for them, by the pods' keys."""
        self.nominator = Nominator(pod_lister, self._queued_pod)
        self._gating = gating
        self._clock = clock
        self._metrics = metrics
        self._pop_from_backoff = pop_from_backoff

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return chain(self.active, self.backoff, self.pool)

    def sizes(self) -> QueueSizes:
        """How many pods wait where."""
        gated = self.pool.gated_count()
        # Asked in another thread, gated ones may have left between the two counts.
        sizes = QueueSizes(len(self.active), len(self.backoff), max(0, len(self.pool) - gated), gated)
        return self._with_all_pods(sizes) if self.grouped else sizes

    def _with_all_pods(self, sizes: QueueSizes) -> QueueSizes:
        """The sizes with each group counted as its pods."""
        groups = Counter(each.group for each in self.grouped.copy().values() if each.group is not None)
        more = Counter[str]()
        for group, pods in groups.items():
            more[GATED if group.gated else group.place] += pods - 1
        return QueueSizes(*(size + more[place] for place, size in sizes._asdict().items()))

    def get(self, key: str) -> QueuedPodInfo | None:
        """What has that key, wherever it waits: the record of a pod that waits alone, or of a group."""
        return self.active.get(key) or self.backoff.get(key) or self.pool.get(key)

    def place_of(self, record: QueuedPodInfo) -> str:
        """Where the record waits."""
        key = record.key
        if key in self.active:
            return ACTIVE
        return BACKOFF if key in self.backoff else UNSCHEDULABLE

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take what has that key out, wherever it waits."""
        return self.active.remove(key) or self.backoff.remove(key) or self.pool.remove(key)

    def restore(self, record: QueuedPodInfo) -> bool:
        """Put a record back in order after it changed; False where it is in neither activeQ nor backoffQ."""
        key = record.key
        if self.active.get(key) is record:
            self.active.put(key, record)
        elif self.backoff.get(key) is record:
            self.backoff.restore(key, record)
        else:
            return False
        return True

    def activate(self, key: str) -> bool:
        """Make it ready, whatever its backoff, unless it is held back; answers whether it became so."""
        record = self.pool.get(key) or self.backoff.get(key)
        if record is None or self.held(record):
            return False
        if self.backoff.remove(key) is None:
            return self.move_to_active(record, FORCE_ACTIVATE.label)
        return self.move_to_active(record, FORCE_ACTIVATE.label, from_backoff=True)

    def held(self, record: QueuedPodInfo) -> bool:
        """Whether nothing may bring the pod back yet."""
        return self.backoff.policy.held(record, self._clock.monotonic())

    def move_to_active(self, record: QueuedPodInfo, event: str, *, from_backoff: bool = False) -> bool:
        """Make a pod ready, unless it is gated; answers whether it is ready now."""
        key = record.key
        checked_before = self._pop_from_backoff and from_backoff
        if not checked_before and not self._gating.check(record):
            if key not in self.active and key not in self.backoff:
                self.park(record, event)
            if self._nominates_gated and event in self._arrivals and not isinstance(record, QueuedGroupInfo):
                self.nominator.add(record.pod)
            return False
        self.backoff.remove(key)
        self._enter_active(key, record, event)
        return True

    def put_off(self, record: QueuedPodInfo, seconds: float) -> None:
        """Hold a pod back that was next in turn, as if it had not been."""
        record.held_until, record.backoff_expiration = self._clock.monotonic() + seconds, None
        self.backoff.put(record.key, record)
        self.count_in(record, BACKOFF, LABEL_PUT_OFF)

    def park(self, record: QueuedPodInfo, event: str) -> None:
        """Put a pod into the pool, or leave it there."""
        if self.pool.put(record.key, record):
            self.count_in(record, UNSCHEDULABLE, event)

    def requeue(self, record: QueuedPodInfo, strategy: RequeueStrategy, event: str) -> bool:
        """Put a pod where the strategy says; answers whether it is in activeQ or backoffQ now."""
        if event != LABEL_SCHEDULE_ATTEMPT_FAILURE:
            record.rests = False
        if strategy is RequeueStrategy.SKIP:
            self.park(record, event)
            return False
        return self._enter(record.key, record, strategy, event, self._clock.monotonic())

    def put_back(self, group: QueuedGroupInfo, place: str, event: str) -> bool:
        """Put a group back into the place that it was taken from, its pods being others now.

        On the way to activeQ and backoffQ its gates are asked, and where the pod is gone that held it back;
        answers whether it is in one of them.
        """
        if place == UNSCHEDULABLE and group.holder is not None:
            self.pool.put(group.key, group)
            return False
        strategy = RequeueStrategy.IMMEDIATELY if place == ACTIVE else RequeueStrategy.AFTER_BACKOFF
        return self._enter(group.key, group, strategy, event, self._clock.monotonic())

    def move_on(self, records: Iterable[QueuedPodInfo], strategy: RequeueStrategy, event: str) -> bool:
        """Put those of the pods that are in the pool where the strategy says, in one go.

        Answers whether one is in activeQ or backoffQ now.
        """
        moved, now = False, self._clock.monotonic()
        for record in records:
            key = record.key
            if self.pool.take(key, record):
                record.rests = False
                moved |= self._enter(key, record, strategy, event, now)
        return moved

    def _enter(
        self, key: str, record: QueuedPodInfo, strategy: RequeueStrategy, event: str, now: float
    ) -> bool:
        """Put a pod that is nowhere, or in the pool, into activeQ or backoffQ, unless it is gated."""
        backoff = self.backoff.policy
        immediately = strategy is RequeueStrategy.IMMEDIATELY
        waits = backoff.held(record, now) if immediately else backoff.backing_off(record, now)
        if (self._pop_from_backoff or not waits) and not self._gating.check(record):
            self.park(record, event)
            return False
        if waits:
            self._enter_backoff(key, record, event)
        else:
            self._enter_active(key, record, event)
        return True

    def _enter_active(self, key: str, record: QueuedPodInfo, event: str) -> None:
        if record.initial_attempt_timestamp is None:
            record.initial_attempt_timestamp = self._clock.monotonic()
        self.pool.remove(key)
        self.active.put(key, record)
        if isinstance(record, QueuedGroupInfo):
            self._first_tried(record)
            self.count_in(record, ACTIVE, event)
            return
        self._metrics.pod_incoming(ACTIVE, event)
        if event in self._arrivals:
            self.nominator.add(record.pod)

    def _first_tried(self, group: QueuedGroupInfo) -> None:
        for member in group.members:
            if member.initial_attempt_timestamp is None:
                member.initial_attempt_timestamp = self._clock.monotonic()

    def _enter_backoff(self, key: str, record: QueuedPodInfo, event: str) -> None:
        self.pool.remove(key)
        if self.backoff.put(key, record):
            self.count_in(record, BACKOFF, event)

    def count_in(self, record: QueuedPodInfo, place: str, event: str) -> None:
        """Count what reached a place."""
        if isinstance(record, QueuedGroupInfo):
            moved, record.place = record.place != place, place
            kind = kind_of(record.group_key)
            self._metrics.group_incoming(place, event, kind, len(record.members), moved=moved)
        else:
            self._metrics.pod_incoming(place, event)

    def end_backoff(self, records: Iterable[QueuedPodInfo], event: str) -> bool:
        """Make those of the pods ready that back off and may come back; answers whether one is ready now."""
        moved = False
        for record in records:
            key = record.key
            if self.backoff.get(key) is record and not self.held(record):
                self.backoff.remove(key)
                moved |= self.move_to_active(record, event, from_backoff=True)
        return moved

    def _queued_pod(self, key: str) -> Pod | None:
        record = self.active.get(key) or self.pool.get(key) or self.backoff.get(key) or self.grouped.get(key)
        return record.pod if record else None
