"""The pod-group cycle's figures, as Prometheus wants them.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36, v1.37).
"""

from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.telemetry.metrics.metric_families import Families

POD_GROUP = "podgroup"
"""The type of the groups whose placements are counted: those of CompositePodGroups are not."""


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

    def generated(self, placements: int, profile: str) -> None:
        """Count placements that are to be tried."""
        if counter := self._families.counters.get("scheduler_generated_placements_total"):
            counter.labels(profile, *self._types()).inc(placements)

    def evaluated(self, seconds: float, profile: str, *, feasible: bool, placements: int = 1) -> None:
        """Count placements that were tried."""
        families = self._families
        if counter := families.counters.get("scheduler_placement_evaluations_total"):
            labels = ("feasible" if feasible else "infeasible", profile, *self._types())
            counter.labels(*labels).inc(placements)
            series = families.histograms["scheduler_placement_evaluation_duration_seconds"].labels(*labels)
            series.observe(seconds, placements)

    def _types(self) -> tuple[str, ...]:
        return (POD_GROUP,) if self._families.placement_labels else ()
