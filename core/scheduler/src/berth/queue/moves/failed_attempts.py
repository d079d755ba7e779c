"""What becomes of a pod after an attempt that failed: it waits in the pool, backs off, or is ready at once.

Called by: the scheduling queue, while the pod is still in flight, so that what it missed counts.

Source: pkg/scheduler/backend/queue/scheduling_queue.go AddUnschedulableIfNotPresent (Kubernetes v1.36).
"""

import logging

from berth.framework.clock import Clock
from berth.framework.cluster_event import LABEL_SCHEDULE_ATTEMPT_FAILURE
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.errors import AlreadyQueuedError
from berth.queue.pools.in_flight import InFlight
from berth.queue.queue_metrics import QueueMetrics, count_rejected
from berth.queue.requeueing.hint_questions import HintQuestions
from berth.queue.requeueing.requeue_strategy import RequeueStrategies, RequeueStrategy
from berth.queue.sub_queues import SubQueues

log = logging.getLogger(__name__)


class FailedAttempts:
    """Takes records back."""

    def __init__(
        self,
        sub_queues: SubQueues,
        strategies: RequeueStrategies,
        in_flight: InFlight,
        clock: Clock,
        metrics: QueueMetrics,
    ) -> None:
        self._sub_queues = sub_queues
        self._strategies = strategies
        self._in_flight = in_flight
        self._clock = clock
        self._metrics = metrics

    def take_back(self, record: QueuedPodInfo, asked: HintQuestions, *, rests: bool) -> bool:
        """Put the record where it belongs; answers whether it is in activeQ or backoffQ now.

        The pod of a group `rests`: it backs off whatever happened meanwhile.

        Raises: AlreadyQueuedError.
        """
        self.count(record)
        record.rests = rests
        strategy = self._strategy(record, asked)
        return self._sub_queues.requeue(record, strategy, LABEL_SCHEDULE_ATTEMPT_FAILURE)

    def count(self, record: QueuedPodInfo) -> None:
        """Take note of an attempt that failed. Raises: AlreadyQueuedError."""
        self._refuse_present(record.key)
        note_failure(record, self._clock.monotonic(), rejected=bool(record.rejectors))
        count_rejected(self._metrics, record, 1)

    def _refuse_present(self, key: str) -> None:
        sub_queues = self._sub_queues
        if key in sub_queues.grouped:
            raise AlreadyQueuedError(key, "the pod group")
        if key in sub_queues.pool:
            raise AlreadyQueuedError(key, "unschedulable")
        if key in sub_queues.active:
            raise AlreadyQueuedError(key, "the active")
        if key in sub_queues.backoff:
            raise AlreadyQueuedError(key, "the backoff")

    def _strategy(self, record: QueuedPodInfo, asked: HintQuestions) -> RequeueStrategy:
        """What the events mean that came during the attempt; what is still to be asked of them in `asked`."""
        if not record.rejectors or record.rests:
            return RequeueStrategy.AFTER_BACKOFF
        missed = self._in_flight.events_for(record.pod.uid)
        if missed is None:
            log.error("in flight Pod isn't found in the scheduling queue pod=%s", record.pod.key)
            return RequeueStrategy.AFTER_BACKOFF
        best = RequeueStrategy.SKIP
        questions = HintQuestions()
        for entry in missed:
            strategy = self._strategies.worth(record, entry.event, entry.old, entry.new, questions)
            if strategy is RequeueStrategy.IMMEDIATELY:
                return strategy
            if strategy is RequeueStrategy.AFTER_BACKOFF:
                best = strategy
                if not record.pending_plugins:
                    break
        asked.join(questions if best is RequeueStrategy.SKIP else questions.of_pending())
        return best


def note_failure(record: QueuedPodInfo, now: float, *, rejected: bool) -> None:
    """Count an attempt that was rejected, or broke, so that the record backs off longer each time."""
    if rejected:
        record.unschedulable_count += 1
        record.consecutive_errors_count = 0
    else:
        record.consecutive_errors_count += 1
    record.timestamp = now
    record.backoff_expiration = None
    record.was_flushed_from_unschedulable = False
