"""The queue's figures, as Prometheus wants them.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36).
"""

from collections import Counter

import prometheus_client as prometheus

from berth.framework.status import SUCCESS
from berth.queue.queue_metrics import QueueMetrics
from berth.telemetry.metrics.histogram import Series
from berth.telemetry.metrics.metric_families import Families

INCOMING = "scheduler_queue_incoming_pods_total"


class PrometheusQueueMetrics(QueueMetrics):
    """What the scheduling queue is given as its QueueMetrics.

    `rejected` holds pods by plugin and profile, `in_flight` events by label. Of groups it keeps apart how
    many arrived, and how many pods with them, by queue and event.
    """

    def __init__(self, families: Families) -> None:
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.in_flight: Counter[tuple[str]] = Counter()
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families
        self._incoming: dict[tuple[str, str], prometheus.Counter] = {}
        self._groups: Counter[tuple[str, str]] = Counter()
        self._in_groups: Counter[tuple[str, str]] = Counter()
        self._hints: dict[tuple[str, str, str], Series] = {}

    def pod_incoming(self, queue: str, event: str) -> None:
        """Count a pod that reached the queue."""
        self._counter(queue, event).inc()

    def group_incoming(self, queue: str, event: str, pods: int, *, moved: bool) -> None:
        """Count the pods of a group that reached the queue, and the group where it was not there before."""
        self._counter(queue, event).inc(pods)
        self._in_groups[queue, event] += pods
        self._groups[queue, event] += moved

    def entities(self) -> dict[tuple[str, str, str], float]:
        """How many pods on their own, and how many groups, reached each queue, by queue, event and type."""
        (incoming,) = self._families.counters[INCOMING].collect()
        groups, in_groups = self._groups.copy(), self._in_groups.copy()
        found = {(queue, event, "podgroup"): float(count) for (queue, event), count in groups.items()}
        for sample in incoming.samples:
            at = sample.labels["queue"], sample.labels["event"]
            found[*at, "pod"] = sample.value - in_groups[at]
        return found

    def _counter(self, queue: str, event: str) -> prometheus.Counter:
        child = self._incoming.get((queue, event))
        if child is None:
            child = self._incoming[queue, event] = self._families.counters[INCOMING].labels(queue, event)
        return child

    def rejected_pods(self, plugin: str, profile: str, change: int) -> None:
        """Follow how many pods the plugin holds back."""
        self.rejected[plugin, profile] += change

    def in_flight_events(self, event: str, change: int) -> None:
        """Follow how many events are kept for pods in flight."""
        self.in_flight[event,] += change

    def hint_executed(
        self, plugin: str, event: str, hint: str, duration_seconds: float, pods: int = 1
    ) -> None:
        """Observe a hint, once for each pod that it answered for; they share the time that it took."""
        child = self._hints.get((plugin, event, hint))
        if child is None:
            family = self._families.histograms["scheduler_queueing_hint_execution_duration_seconds"]
            child = self._hints[plugin, event, hint] = family.labels(plugin, event, hint)
        child.observe(duration_seconds / pods, pods)

    def pre_enqueue_executed(self, profile: str, duration_seconds: float) -> None:
        """Observe the PreEnqueue point; its status is Success whatever came of it, as upstream's is."""
        family = self._families.histograms["scheduler_framework_extension_point_duration_seconds"]
        family.labels("PreEnqueue", str(SUCCESS.code), profile).observe(duration_seconds)

    def gate_executed(self, plugin: str, status: str, duration_seconds: float) -> None:
        """Observe a PreEnqueue plugin, with what it said."""
        family = self._families.histograms["scheduler_plugin_execution_duration_seconds"]
        family.labels(plugin, "PreEnqueue", status).observe(duration_seconds)
