"""What the queue counts.

Sizes are not counted: `SchedulingQueue.sizes()` is read when metrics are collected.

Source: pkg/scheduler/metrics/metrics.go, metrics/metric_recorder.go (Kubernetes v1.36).
"""

from collections import Counter

from berth.framework.ports.measurements import NO_MEASUREMENTS, Measurements
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import SUCCESS

INCOMING = "scheduler_queue_incoming_pods_total"


class QueueMetrics:
    """Counts in the given measurements, and keeps what is exported as gauges and by type of entity.

    `rejected` holds pods by plugin and profile, `in_flight` events by label.
    """

    def __init__(self, measurements: Measurements = NO_MEASUREMENTS) -> None:
        self._measurements = measurements
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.in_flight: Counter[tuple[str]] = Counter()
        self._entities: Counter[tuple[str, str, str]] = Counter()

    def pod_incoming(self, queue: str, event: str) -> None:
        """Count a pod that reached that queue: active, backoff or unschedulable."""
        self._measurements.count(INCOMING, queue, event)
        self._entities[queue, event, "pod"] += 1

    def group_incoming(self, queue: str, event: str, kind: str, pods: int, *, moved: bool) -> None:
        """Count the pods of a group that reached that queue, and by kind the group where it `moved` there."""
        self._measurements.count(INCOMING, queue, event, by=pods)
        self._entities[queue, event, kind] += moved

    def entities(self) -> dict[tuple[str, str, str], float]:
        """How many pods on their own, and how many groups, reached each queue, by queue, event and type."""
        return dict(self._entities)

    def rejected_pods(self, plugin: str, profile: str, change: int) -> None:
        """Follow how many pods the plugin rejects: unschedulable_pods."""
        self.rejected[plugin, profile] += change

    def in_flight_events(self, event: str, change: int) -> None:
        """Follow how many events are kept for pods in flight: inflight_events."""
        self.in_flight[event,] += change

    def hint_executed(
        self, plugin: str, event: str, hint: str, duration_seconds: float, pods: int = 1
    ) -> None:
        """Observe a hint, once for each pod that it answered for; they share the time that it took."""
        self._measurements.observe(
            "scheduler_queueing_hint_execution_duration_seconds",
            duration_seconds / pods,
            *(plugin, event, hint),
            times=pods,
        )

    def pre_enqueue_executed(self, profile: str, duration_seconds: float) -> None:
        """Observe a profile's PreEnqueue, with the status Success whatever plugins returned, as upstream."""
        self._measurements.observe(
            "scheduler_framework_extension_point_duration_seconds",
            duration_seconds,
            *("PreEnqueue", str(SUCCESS.code), profile),
        )

    def gate_executed(self, plugin: str, status: str, duration_seconds: float) -> None:
        """Observe a PreEnqueue plugin, in one of ten runs."""
        self._measurements.observe(
            "scheduler_plugin_execution_duration_seconds",
            duration_seconds,
            *(plugin, "PreEnqueue", status),
        )

    def reset(self) -> None:
        """Count entities from 0 again; gauges stay."""
        self._entities.clear()


def count_rejected(metrics: QueueMetrics, record: QueuedPodInfo, change: int) -> None:
    """Count a record for each plugin that holds it back: 1 where it begins to wait, -1 where it ends."""
    for plugin in record.rejectors:
        metrics.rejected_pods(plugin, record.pod.spec.scheduler_name, change)
