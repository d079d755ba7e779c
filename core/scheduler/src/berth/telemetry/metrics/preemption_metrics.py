"""Preemption's figures, as Prometheus wants them.

Source: pkg/scheduler/metrics/metrics.go PreemptionVictims, PreemptionAttempts (Kubernetes v1.36),
WorkloadPreemptionAttempts and those after it (v1.37); executor.go (v1.37).
"""

from berth.framework.mirrors.group_trees import PODGROUP
from berth.preemption.candidates import Candidate
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.telemetry.metrics.metric_families import Families


class PrometheusPreemptionMetrics(PreemptionMetrics):
    """What preemption is given as its PreemptionMetrics."""

    def __init__(self, families: Families) -> None:
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families

    def attempted(self) -> None:
        """Count a pod that asked for room."""
        self._families.counters["scheduler_preemption_attempts_total"].inc()

    def attempted_for_group(self, result: str) -> None:
        """Count a group that asked for room."""
        if counter := self._families.counters.get("scheduler_workload_preemption_attempts_total"):
            counter.labels(result).inc()

    def evaluated(self, preemptor: str, result: str, seconds: float) -> None:
        """Observe a search for victims."""
        if histogram := self._families.histograms.get("scheduler_preemption_evaluation_duration_seconds"):
            histogram.labels(preemptor, result).observe(seconds)

    def chosen(self, preemptor: str, candidate: Candidate) -> None:
        """Observe how many pods, and units of groups, go for a preemptor, and what budgets that violates."""
        histograms, counters = self._families.histograms, self._families.counters
        of_groups = histograms.get("scheduler_workload_preemption_victims")
        victims = (
            of_groups if of_groups and preemptor == PODGROUP else histograms["scheduler_preemption_victims"]
        )
        victims.observe(len(candidate.victims))
        if of_groups:
            if candidate.group_disruptions:
                histograms["scheduler_preemption_workload_disruptions"].labels(preemptor).observe(
                    candidate.group_disruptions
                )
            counters["scheduler_preemption_pdb_violations_total"].labels(preemptor).inc(
                candidate.pdb_violations
            )

    def evicted(self, preemptor: str, seconds: float, *, failed: bool, beside: bool) -> None:
        """Observe the evictions for one preemptor."""
        result = "error" if failed else "success"
        families = self._families
        if histogram := families.histograms.get("scheduler_preemption_execution_duration_seconds"):
            histogram.labels(preemptor, result).observe(seconds)
        if not beside:
            return
        families.counters["scheduler_preemption_goroutines_execution_total"].labels(result).inc()
        families.histograms["scheduler_preemption_goroutines_duration_seconds"].labels(result).observe(
            seconds
        )
