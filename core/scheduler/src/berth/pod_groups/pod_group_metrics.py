"""What the pod-group cycle counts; telemetry gives the numbers their names.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36, v1.37).
"""

from typing import Protocol


class PodGroupMetrics(Protocol):
    """Where the numbers go."""

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """An attempt is over: podgroup_schedule_attempts_total, ..._scheduling_attempt_duration_seconds."""

    def decided(self, seconds: float) -> None:
        """The group algorithm came to a result: podgroup_scheduling_algorithm_duration_seconds."""

    def generated(self, placements: int, profile: str) -> None:
        """So many placements are to be tried: generated_placements_total."""

    def evaluated(self, seconds: float, profile: str, *, feasible: bool) -> None:
        """One was tried: placement_evaluations_total and placement_evaluation_duration_seconds."""


class NoPodGroupMetrics:
    """No-op metrics."""

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Nothing."""

    def decided(self, seconds: float) -> None:
        """Nothing."""

    def generated(self, placements: int, profile: str) -> None:
        """Nothing."""

    def evaluated(self, seconds: float, profile: str, *, feasible: bool) -> None:
        """Nothing."""
