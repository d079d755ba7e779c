"""What the answers of gates mean for pods that wait: PreEnqueue sidecars, and gates that are new.

Source: pkg/scheduler/backend/queue/scheduling_queue.go runPreEnqueuePlugins (Kubernetes v1.36);
docs/protocol.md "Order of calls".
"""

from collections.abc import Iterable
from itertools import chain

from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.queue.gating import Gating
from berth.queue.moves.async_pre_enqueue import Verdicts
from berth.queue.pools.in_flight import InFlightEvent
from berth.queue.requeueing.hint_questions import HintQuestions
from berth.queue.requeueing.requeue_strategy import RequeueStrategies, RequeueStrategy
from berth.queue.sub_queues import SubQueues

LABEL_GATES_ANSWERED = "GatesAnswered"
LABEL_NEW_GATE = "NewGate"
LABEL_NEW_SORT_KEY = "NewSortKey"


class GateAnswers:
    """Queues pods that may pass, and parks those that may not."""

    def __init__(self, sub_queues: SubQueues, gating: Gating, strategies: RequeueStrategies) -> None:
        self._sub_queues = sub_queues
        self._gating = gating
        self._strategies = strategies

    def check_again(self, profile: str) -> None:
        """Ask the gates of a profile about pods that are queued already."""
        sub_queues = self._sub_queues
        for record in sub_queues:
            if isinstance(record, QueuedGroupInfo):
                record.check_all_again()
        for record in list(chain(sub_queues.active, sub_queues.backoff)):
            if record.pod.spec.scheduler_name == profile and not self._gating.check(record):
                self._hold_back(record, LABEL_NEW_GATE)

    def check_key(self, record: QueuedPodInfo) -> None:
        """Have a queued pod wait for another sort key, where it changed since it was asked about."""
        if not self._gating.has_key(record):
            self._hold_back(record, LABEL_NEW_SORT_KEY)

    def _hold_back(self, record: QueuedPodInfo, event: str) -> None:
        key = record.key
        self._sub_queues.active.remove(key) or self._sub_queues.backoff.remove(key)
        self._sub_queues.park(record, event)

    def take(
        self,
        record: QueuedPodInfo,
        verdicts: Verdicts,
        missed: Iterable[InFlightEvent],
        asked: HintQuestions,
    ) -> bool:
        """Queue a pod that sidecars let pass; ask again where an event may have changed a no.

        Answers whether it is in activeQ or backoffQ now; what sidecars' hints are to say is in `asked`.
        """
        entity = record.group or record
        if self._sub_queues.pool.get(entity.key) is not entity:
            return False
        passed = self._gating.settle(record, verdicts)
        self._sub_queues.pool.put(entity.key, entity)
        questions = HintQuestions()
        if passed or self._outdated(record, missed, questions):
            return self._sub_queues.requeue(entity, RequeueStrategy.AFTER_BACKOFF, LABEL_GATES_ANSWERED)
        asked.join(questions)
        return False

    def _outdated(self, record: QueuedPodInfo, missed: Iterable[InFlightEvent], asked: HintQuestions) -> bool:
        """Whether one of the events that came while the gate was asked may have changed its answer."""
        gating = record.gating_plugin_events
        return any(
            self._strategies.worth(record, event, old, new, asked) is not RequeueStrategy.SKIP
            for _, event, old, new in missed
            if event.wildcard or any(registered.matches(event) for registered in gating)
        )
