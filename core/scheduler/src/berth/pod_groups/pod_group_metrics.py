"""What the pod-group cycle counts; telemetry gives the numbers their names.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36, v1.37).
"""


class PodGroupMetrics:
    """Where the numbers go; this class counts nothing, telemetry's does."""

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """An attempt is over: podgroup_schedule_attempts_total, ..._scheduling_attempt_duration_seconds."""

    def decided(self, seconds: float) -> None:
        """The group algorithm came to a result: podgroup_scheduling_algorithm_duration_seconds."""

    def generated(self, placements: int, profile: str) -> None:
        """This many placements are to be tried: generated_placements_total."""

    def evaluated(self, seconds: float, profile: str, *, feasible: bool, placements: int = 1) -> None:
        """This many were tried, each for so long: placement_evaluations_total and ..._duration_seconds."""
