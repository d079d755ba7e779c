"""What preemption counts; telemetry gives the numbers their names.

Source: pkg/scheduler/metrics/metrics.go PreemptionVictims, PreemptionAttempts (Kubernetes v1.36).
"""

from typing import Protocol


class PreemptionMetrics(Protocol):
    """Where the numbers go."""

    def attempted(self) -> None:
        """A pod that fits nowhere asked for room: preemption_attempts_total."""

    def victims(self, count: int) -> None:
        """A node was chosen, with that many victims: preemption_victims."""

    def evicted(self, seconds: float, *, failed: bool) -> None:
        """Asynchronous evictions for one pod are over: preemption_goroutines_duration_seconds and _total."""


class NoPreemptionMetrics:
    """No-op metrics."""

    def attempted(self) -> None:
        """Nothing."""

    def victims(self, count: int) -> None:
        """Nothing."""

    def evicted(self, seconds: float, *, failed: bool) -> None:
        """Nothing."""
