"""What plugins count of the volumes and devices that pods claim.

Source: pkg/scheduler/metrics/metrics.go; framework/plugins/volumebinding/metrics (Kubernetes v1.36).
"""

from collections.abc import Iterable
from enum import StrEnum

from berth.framework.ports.measurements import NO_MEASUREMENTS, Measurements

CLAIMS_CREATED = "scheduler_resourceclaim_creates_total"
CLAIMS_CREATED_BY_ANY = "dynamic_resource_allocation_resourceclaim_creates_total"
"""Its name in later releases, where controllers have the same series."""


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
    """Counts in the given measurements."""

    def __init__(self, measurements: Measurements = NO_MEASUREMENTS) -> None:
        self._measurements = measurements

    def volumes_failed(self, stage: VolumeStage) -> None:
        """Count an error of volume scheduling, not a rejection."""
        self._measurements.count("scheduler_volume_scheduling_stage_error_total", stage)

    def claim_created(self, *, failed: bool) -> None:
        """Count a claim that was created for a pod's extended resources, or could not be."""
        result = "failure" if failed else "success"
        self._measurements.count(CLAIMS_CREATED, result)
        self._measurements.count(CLAIMS_CREATED_BY_ANY, result, "false", "", "Pod")

    def devices_awaited(
        self, profile: str, drivers: Iterable[str], outcome: DeviceWait, seconds: float
    ) -> None:
        """Count a pod's wait for devices, and observe how long it took, for each driver."""
        for driver in drivers:
            labels = profile, driver, outcome
            self._measurements.count("scheduler_dra_bindingconditions_allocations_total", *labels)
            self._measurements.observe(
                "scheduler_dra_bindingconditions_wait_duration_seconds", seconds, *labels
            )
