"""PreEnqueue of sidecars, called asynchronously while the pod waits among the unschedulable pods.

    Gating.check -- awaitables --> AsyncPreEnqueue.ask --(sidecars)--> answered
                                                                          |
         all succeeded: checked once more, and queued <-------------------+--> one rejected: gated by it

Events that arrive meanwhile are kept for the pod, as for a pod in flight: the rejection may be older.

Source: pkg/scheduler/backend/queue/scheduling_queue.go runPreEnqueuePlugins (Kubernetes v1.36);
docs/protocol.md "Order of calls".
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from berth.framework.cluster_event import ClusterEvent
from berth.framework.ports.background import Background
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import Status, failed
from berth.objects.pods.pod import Pod
from berth.queue.pools.in_flight import InFlight, InFlightEvent
from berth.queue.queue_metrics import QueueMetrics

Verdicts = Mapping[str, Status]
"""Statuses by plugin, in the profile's order."""


class AsyncPreEnqueue:
    """The pods with PreEnqueue calls in flight.

    `answered` gets the pod's record, the statuses, and the events that arrived meanwhile, unless PreEnqueue
    was called for a newer version of the pod since.
    """

    def __init__(
        self,
        background: Background | None,
        answered: Callable[[QueuedPodInfo, Verdicts, list[InFlightEvent]], None],
    ) -> None:
        self._background = background
        self._answered = answered
        self._missed = InFlight(QueueMetrics())

    def __len__(self) -> int:
        return len(self._missed)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for all pods with calls in flight."""
        self._missed.record(event, old, new)

    def ask(self, record: QueuedPodInfo, answers: Mapping[str, Awaitable[Status]]) -> None:
        """Await the named plugins' statuses of the pod."""
        record.asked_as = record.pod
        self._missed.done(record.pod.uid)
        self._missed.begin(record.pod.uid)
        background = self._background
        if background is None:
            raise RuntimeError("a queue with PreEnqueue sidecars needs a background to ask them in")
        background.spawn(self._wait(background, record, record.pod, answers), f"gates of {record.pod.key}")

    async def _wait(
        self,
        background: Background,
        record: QueuedPodInfo,
        pod: Pod,
        answers: Mapping[str, Awaitable[Status]],
    ) -> None:
        statuses = await background.all_of([_status(answer) for answer in answers.values()])
        if record.asked_as is not pod:
            return
        record.asked_as = None
        missed = self._missed.events_for(pod.uid) or []
        self._missed.done(pod.uid)
        self._answered(record, dict(zip(answers, statuses, strict=True)), missed)

    def forget(self, pod: Pod) -> None:
        """The pod is not waited for any longer."""
        self._missed.done(pod.uid)


async def _status(answer: Awaitable[Status]) -> Status:
    try:
        return await answer
    except Exception as error:  # noqa: BLE001 - a broken gate holds its pod back, not the queue
        return failed(error)
