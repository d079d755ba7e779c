"""What preemption counts. A preemptor is a `pod` or a `podgroup`, a result the name of a status code.

Source: pkg/scheduler/metrics/metrics.go PreemptionVictims, PreemptionAttempts (Kubernetes v1.36),
WorkloadPreemptionAttempts and those after it (v1.37); executor.go (v1.37).
"""

from berth.framework.mirrors.group_trees import PODGROUP
from berth.framework.ports.measurements import NO_MEASUREMENTS, Measurements
from berth.preemption.candidates import Candidate

VICTIMS_OF_GROUPS = "scheduler_workload_preemption_victims"


class PreemptionMetrics:
    """Counts in the given measurements."""

    def __init__(self, measurements: Measurements = NO_MEASUREMENTS) -> None:
        self._measurements = measurements

    def attempted(self) -> None:
        """Count a pod that fits nowhere and may preempt."""
        self._measurements.count("scheduler_preemption_attempts_total")

    def attempted_for_group(self, result: str) -> None:
        """Count a group that fits nowhere and may preempt."""
        self._measurements.count("scheduler_workload_preemption_attempts_total", result)

    def evaluated(self, preemptor: str, result: str, seconds: float) -> None:
        """Observe a search for victims."""
        self._measurements.observe(
            "scheduler_preemption_evaluation_duration_seconds", seconds, preemptor, result
        )

    def chosen(self, preemptor: str, candidate: Candidate) -> None:
        """Observe the victims of the chosen node, or of the cluster, and the budgets that they violate."""
        measurements = self._measurements
        of_group = preemptor == PODGROUP and measurements.exports(VICTIMS_OF_GROUPS)
        victims = VICTIMS_OF_GROUPS if of_group else "scheduler_preemption_victims"
        measurements.observe(victims, len(candidate.victims))
        if disrupted := candidate.group_disruptions:
            measurements.observe("scheduler_preemption_workload_disruptions", disrupted, preemptor)
        measurements.count(
            "scheduler_preemption_pdb_violations_total", preemptor, by=candidate.pdb_violations
        )

    def evicted(self, preemptor: str, seconds: float, *, failed: bool, beside: bool) -> None:
        """Observe the evictions for one preemptor; those made `beside` the cycle are also counted apart."""
        result, measurements = "error" if failed else "success", self._measurements
        measurements.observe("scheduler_preemption_execution_duration_seconds", seconds, preemptor, result)
        if beside:
            measurements.count("scheduler_preemption_goroutines_execution_total", result)
            measurements.observe("scheduler_preemption_goroutines_duration_seconds", seconds, result)
