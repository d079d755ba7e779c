"""backoffQ: pods that wait a little before the next attempt, rejected ones apart from failed ones.

The normal heap may be popped from before its time when nothing else is ready; the others never are.

Source: pkg/scheduler/backend/queue/backoff_queue.go (Kubernetes v1.36).
"""

import logging
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from math import floor, inf

import msgspec

from berth.framework.pacing import Backoff
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.pools.record_heap import Order, RecordHeap, ShardOf, whole

log = logging.getLogger(__name__)


class BackoffPolicy(msgspec.Struct, frozen=True):
    """When pods have waited enough. `windowed` floors to whole seconds (SchedulerPopFromBackoffQ)."""

    initial_seconds: int = 1
    max_seconds: int = 10
    windowed: bool = True

    def expiry(self, record: QueuedPodInfo) -> float:
        """The record's last moment of backing off, kept in the record; minus infinity for none."""
        if record.backoff_expiration is None:
            record.backoff_expiration = self._expiry(record)
        return record.backoff_expiration

    def _expiry(self, record: QueuedPodInfo) -> float:
        count = record.consecutive_errors_count or record.unschedulable_count
        duration = Backoff(self.initial_seconds, self.max_seconds).pause(count)
        expiry = self._window(record.timestamp + duration) if duration else -inf
        return expiry if record.held_until is None else max(expiry, self._window(record.held_until))

    def backing_off(self, record: QueuedPodInfo, now: float) -> bool:
        """Whether the record still waits; its last second counts in full."""
        return self.expiry(record) >= self._window(now)

    def held(self, record: QueuedPodInfo, now: float) -> bool:
        """Whether the record waits whatever happens, because it used more than its share of CPU."""
        return record.held_until is not None and self.backing_off(record, now)

    def _window(self, moment: float) -> float:
        return float(floor(moment)) if self.windowed else moment


class BackoffQueue:
    """Three heaps, one queue: lookups and removals see all of them.

    `resting` are rejected pods of a group. They come back without any event that could help them, so trying
    them before their time would be in vain, again and again (docs/decisions/0011-groups-rest.md). So are pods
    that are held back because their cycles went over budget (docs/decisions/0020-cycle-budget.md).
    """

    def __init__(self, order: Order, backoff: BackoffPolicy, shard_of: ShardOf = whole) -> None:
        self.policy = backoff
        self.normal = RecordHeap(lambda record: (backoff.expiry(record), order(record)), shard_of)
        self.resting = RecordHeap(lambda record: (backoff.expiry(record), order(record)))
        self.error = RecordHeap(backoff.expiry)
        self._heaps = (self.normal, self.resting, self.error)

    def __len__(self) -> int:
        return sum(len(heap) for heap in self._heaps)

    def __contains__(self, key: str) -> bool:
        return any(key in heap for heap in self._heaps)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return chain.from_iterable(self._heaps)

    def get(self, key: str) -> QueuedPodInfo | None:
        """The record of that key."""
        return next((record for heap in self._heaps if (record := heap.get(key)) is not None), None)

    def put(self, key: str, record: QueuedPodInfo) -> bool:
        """Insert a record into the heap that its rejectors choose; False where another heap had it."""
        chosen = self._heap_for(record)
        misplaced = [heap for heap in self._heaps if heap is not chosen and heap.remove(key) is not None]
        if misplaced:
            log.error("pod was in the other backoff queue pod=%s", key)
        chosen.put(key, record)
        return not misplaced

    def restore(self, key: str, record: QueuedPodInfo) -> None:
        """Put a record of this queue back in order after it changed."""
        next(heap for heap in self._heaps if key in heap).put(key, record)

    def release(self, namespaces: AbstractSet[str]) -> None:
        """Let pods of these namespaces that were held back wait no longer than their backoff."""
        # Those whose attempts ended with an error at their budgets are among the failed ones.
        held = [each for each in chain(self.resting, self.error) if each.pod.namespace in namespaces]
        for record in held:
            if record.held_until is not None:
                self.remove(record.key)
                record.held_until = record.backoff_expiration = None
                self.put(record.key, record)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the record of that key out."""
        for heap in self._heaps:
            if (record := heap.remove(key)) is not None:
                return record
        return None

    def _heap_for(self, record: QueuedPodInfo) -> RecordHeap:
        if record.failed:
            return self.error
        return self.resting if record.rests or record.held_until is not None else self.normal

    def pop_completed(self, now: float) -> Iterator[QueuedPodInfo]:
        """Take out the records that have waited enough, rejected ones first."""
        for heap in self._heaps:
            for shard in heap.shards:
                while (head := heap.peek(shard)) is not None and not self.policy.backing_off(head, now):
                    heap.pop(shard)
                    yield head

    def next_completion(self) -> float:
        """The whole second at which the next record has waited enough; infinity where none waits."""
        heads = (heap.peek(shard) for heap in self._heaps for shard in heap.shards)
        expiries = [self.policy.expiry(head) for head in heads if head is not None]
        finite = [floor(expiry) + 1.0 if expiry > -inf else expiry for expiry in expiries]
        return min(finite, default=inf)
