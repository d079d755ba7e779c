"""What time alone moves: pods whose backoff is over, and pods that no event has helped for too long.

Source: pkg/scheduler/backend/queue/scheduling_queue.go flushBackoffQCompleted, flushUnschedulablePodsLeftover
(Kubernetes v1.36).
"""

from collections.abc import Callable, Sequence
from math import inf

from berth.framework.clock import Clock
from berth.framework.cluster_event import LABEL_BACKOFF_COMPLETE, UNSCHEDULABLE_TIMEOUT
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.moves.event_moves import EventMoves
from berth.queue.moves.queued_groups import QueuedGroups
from berth.queue.recently_gated import RecentlyGated
from berth.queue.requeueing.hint_questions import HintQuestions
from berth.queue.sub_queues import SubQueues

LEFTOVER_FLUSH_SECONDS = 30.0

StillGated = Callable[[Sequence[QueuedPodInfo]], None]
"""Takes the records that plugins still keep out of the queue when they are flushed."""


class Flushes:
    """Flushes when it is time to; each flush answers whether a pod became ready."""

    def __init__(
        self,
        sub_queues: SubQueues,
        moves: EventMoves,
        clock: Clock,
        *,
        max_in_unschedulable_seconds: float,
        still_gated: StillGated,
        groups: QueuedGroups | None,
        recently: RecentlyGated,
    ) -> None:
        self._recently = recently
        self._still_gated = still_gated
        self._groups = groups
        self._sub_queues = sub_queues
        self._moves = moves
        self._clock = clock
        self._limit_seconds = max_in_unschedulable_seconds
        # No reading here: a replay has no clock yet when it makes its queue.
        self._next_leftovers = -inf

    def next_time(self) -> float:
        """When there is something to do at the earliest. Units: seconds of the monotonic clock."""
        backoff, gated = self._sub_queues.backoff.next_completion(), self._recently.next_time()
        return min(self._next_leftovers, backoff, gated)

    def leftovers_due(self) -> bool:
        """Whether it is time for `leftovers`; the answer is yes once every LEFTOVER_FLUSH_SECONDS."""
        now = self._clock.monotonic()
        if now < self._next_leftovers:
            return False
        late = 0.0 if self._next_leftovers == -inf else (now - self._next_leftovers) % LEFTOVER_FLUSH_SECONDS
        self._next_leftovers = now - late + LEFTOVER_FLUSH_SECONDS
        return True

    def backoff(self) -> bool:
        """Make the pods ready that have waited enough."""
        moved = False
        for record in self._sub_queues.backoff.pop_completed(self._clock.monotonic()):
            moved |= self._sub_queues.move_to_active(record, LABEL_BACKOFF_COMPLETE, from_backoff=True)
        return moved

    def newly_gated(self) -> None:
        """Have pods say what they wait for, once they were kept out of the queue for a moment.

        A group is said so of once, for all of its pods.
        """
        found: dict[str, QueuedPodInfo] = {}
        for record in self._recently.due():
            entity = self._sub_queues.pool.get((record.group or record).key)
            if entity is not None and entity.gated:
                found[entity.key] = entity
            elif self._groups is not None and self._groups.is_incomplete(record):
                found[record.key] = record
        if found:
            self._still_gated(list(found.values()))

    def leftovers(self) -> bool:
        """Move the pods on that no event has helped for too long; PreEnqueue is run again for gated ones.

        Of gated pods, and those whose group is not there, it is said again what they wait for, where that is
        another thing by then.

        Upstream v1.36.2 leaves gated pods; later releases move them (kubernetes/kubernetes#139162).
        """
        if self._groups is not None:
            self._still_gated(self._groups.without_group())
        now = self._clock.monotonic()
        leftovers = [
            record
            for record in self._sub_queues.pool
            if now - max(record.timestamp, record.last_flush) > self._limit_seconds
        ]
        if not leftovers:
            return False
        for record in leftovers:
            record.was_flushed_from_unschedulable, record.last_flush = True, now
        moved = self._moves.move(
            [[record] for record in leftovers], UNSCHEDULABLE_TIMEOUT, None, None, HintQuestions()
        )
        for record in leftovers:
            record.was_flushed_from_unschedulable = not record.gated
        self._still_gated([record for record in leftovers if record.gated])
        return moved
