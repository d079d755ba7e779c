"""What the pod-group cycle counts.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36, v1.37).
"""

from berth.framework.ports.measurements import NO_MEASUREMENTS, Measurements

POD_GROUP = "podgroup"
"""The type of the groups whose placements are counted: those of CompositePodGroups are not."""


class PodGroupMetrics:
    """Counts in the given measurements."""

    def __init__(self, measurements: Measurements = NO_MEASUREMENTS) -> None:
        self._measurements = measurements

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Count an attempt that is over."""
        self._measurements.count("scheduler_podgroup_schedule_attempts_total", result, profile)
        self._measurements.observe(
            "scheduler_podgroup_scheduling_attempt_duration_seconds", seconds, result, profile
        )

    def decided(self, seconds: float) -> None:
        """Observe how long the group algorithm took."""
        self._measurements.observe("scheduler_podgroup_scheduling_algorithm_duration_seconds", seconds)

    def generated(self, placements: int, profile: str) -> None:
        """Count placements that are to be tried."""
        self._measurements.count("scheduler_generated_placements_total", profile, POD_GROUP, by=placements)

    def evaluated(self, seconds: float, profile: str, *, feasible: bool, placements: int = 1) -> None:
        """Count placements that were tried, each for that many seconds."""
        labels = "feasible" if feasible else "infeasible", profile, POD_GROUP
        self._measurements.count("scheduler_placement_evaluations_total", *labels, by=placements)
        self._measurements.observe(
            "scheduler_placement_evaluation_duration_seconds", seconds, *labels, times=placements
        )
