"""The metrics interface of the queue.

Sizes are not pushed: `SchedulingQueue.sizes()` is read when metrics are collected.

Source: pkg/scheduler/metrics/metrics.go, metrics/metric_recorder.go (Kubernetes v1.36).
"""

from berth.framework.queueing.queued_pod import QueuedPodInfo


class QueueMetrics:
    """Counters, gauges and durations of the queue; this class counts nothing, telemetry's does."""

    def pod_incoming(self, queue: str, event: str) -> None:
        """A pod reached that queue (active, backoff, unschedulable): queue_incoming_pods_total."""

    def group_incoming(self, queue: str, event: str, pods: int, *, moved: bool) -> None:
        """A group of so many pods reached that queue, or was `moved` there from another one."""

    def rejected_pods(self, plugin: str, profile: str, change: int) -> None:
        """That many more pods, or fewer, are held back by the plugin: unschedulable_pods."""

    def in_flight_events(self, event: str, change: int) -> None:
        """That many more, or fewer, entries of that label are kept: inflight_events."""

    def hint_executed(
        self, plugin: str, event: str, hint: str, duration_seconds: float, pods: int = 1
    ) -> None:
        """A hint answered Queue, QueueSkip or Error: queueing_hint_execution_duration_seconds.

        `pods` says for how many pods it answered at once; each of them counts.
        """

    def pre_enqueue_executed(self, profile: str, duration_seconds: float) -> None:
        """A profile's PreEnqueue ran: framework_extension_point_duration_seconds, status Success."""

    def gate_executed(self, plugin: str, status: str, duration_seconds: float) -> None:
        """A PreEnqueue plugin answered, in one of ten runs: plugin_execution_duration_seconds."""


def count_rejected(metrics: QueueMetrics, record: QueuedPodInfo, change: int) -> None:
    """Count a record for each plugin that holds it back: 1 where it begins to wait, -1 where it ends."""
    for plugin in record.rejectors:
        metrics.rejected_pods(plugin, record.pod.spec.scheduler_name, change)
