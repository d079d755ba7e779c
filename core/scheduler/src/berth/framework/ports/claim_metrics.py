"""What plugins count of the volumes and devices that pods claim; telemetry gives the numbers their names.

Source: pkg/scheduler/metrics/metrics.go; framework/plugins/volumebinding/metrics (Kubernetes v1.36).
"""

from collections.abc import Iterable
from enum import StrEnum


class VolumeStage(StrEnum):
    """Where volume scheduling can fail."""

    PREDICATE = "predicate"
    ASSUME = "assume"
    BIND = "bind"


class DeviceWait(StrEnum):
    """How a wait for binding conditions ended: a driver failed, the time was up, or something else broke."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class ClaimMetrics:
    """Where the numbers go; this class counts nothing, telemetry's does."""

    def volumes_failed(self, stage: VolumeStage) -> None:
        """An error, not a rejection: volume_scheduling_stage_error_total."""

    def claim_created(self, *, failed: bool) -> None:
        """A claim for extended resources was created, or not: resourceclaim_creates_total."""

    def devices_awaited(
        self, profile: str, drivers: Iterable[str], outcome: DeviceWait, seconds: float
    ) -> None:
        """A pod's wait for the devices of these drivers is over: dra_bindingconditions_*."""
