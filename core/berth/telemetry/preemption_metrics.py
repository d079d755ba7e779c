"""Preemption's figures, as Prometheus wants them.

Source: pkg/scheduler/metrics/metrics.go PreemptionVictims, PreemptionAttempts (Kubernetes v1.36).
"""

from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.telemetry.metric_families import Families


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

    def victims(self, count: int) -> None:
        """Observe how many pods a chosen node loses."""
        self._families.histograms["scheduler_preemption_victims"].observe(count)

    def evicted(self, seconds: float, *, failed: bool) -> None:
        """Observe the evictions for one pod."""
        result = "error" if failed else "success"
        families = self._families
        families.counters["scheduler_preemption_goroutines_execution_total"].labels(result).inc()
        families.histograms["scheduler_preemption_goroutines_duration_seconds"].labels(result).observe(
            seconds
        )
