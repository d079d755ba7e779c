"""What preemption counts; telemetry gives the numbers their names.

A preemptor is a `pod` or a `podgroup`, a result the name of a status code.
Source: pkg/scheduler/metrics/metrics.go PreemptionVictims, PreemptionAttempts (Kubernetes v1.36),
WorkloadPreemptionAttempts and those after it (v1.37).
"""

from berth.preemption.candidates import Candidate


class PreemptionMetrics:
    """Where the numbers go; this class counts nothing, telemetry's does."""

    def attempted(self) -> None:
        """A pod that fits nowhere asked for room: preemption_attempts_total."""

    def attempted_for_group(self, result: str) -> None:
        """A group that fits nowhere asked for room: workload_preemption_attempts_total."""

    def evaluated(self, preemptor: str, result: str, seconds: float) -> None:
        """Victims were looked for: preemption_evaluation_duration_seconds."""

    def chosen(self, preemptor: str, candidate: Candidate) -> None:
        """A node was chosen, or the cluster: preemption_victims, workload_preemption_victims.

        Also preemption_workload_disruptions and preemption_pdb_violations_total.
        """

    def evicted(self, preemptor: str, seconds: float, *, failed: bool, beside: bool) -> None:
        """Evictions for one preemptor are over: preemption_execution_duration_seconds.

        Those made `beside` the cycle also count in preemption_goroutines_duration_seconds and _total.
        """
