"""The pod-group cycle's figures, as Prometheus wants them.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36).
"""

from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.telemetry.metric_families import Families


class PrometheusPodGroupMetrics(PodGroupMetrics):
    """What the pod-group cycle is given as its PodGroupMetrics; the families have to be those with groups."""

    def __init__(self, families: Families) -> None:
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Count an attempt at a group."""
        families, labels = self._families, (result, profile)
        families.counters["scheduler_podgroup_schedule_attempts_total"].labels(*labels).inc()
        families.histograms["scheduler_podgroup_scheduling_attempt_duration_seconds"].labels(*labels).observe(
            seconds
        )

    def decided(self, seconds: float) -> None:
        """Observe how long the choice of nodes took."""
        self._families.histograms["scheduler_podgroup_scheduling_algorithm_duration_seconds"].observe(seconds)
