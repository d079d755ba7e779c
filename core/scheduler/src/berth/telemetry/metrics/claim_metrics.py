"""Figures of claimed volumes and devices, as Prometheus wants them.

Source: pkg/scheduler/metrics/metrics.go (Kubernetes v1.36).
"""

from collections.abc import Iterable

from berth.framework.ports.claim_metrics import ClaimMetrics, DeviceWait, VolumeStage
from berth.telemetry.metrics.metric_families import CLAIMS_CREATED, CLAIMS_CREATED_BY_ANY, Families


class PrometheusClaimMetrics(ClaimMetrics):
    """What plugins are given as their ClaimMetrics."""

    def __init__(self, families: Families) -> None:
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families

    def volumes_failed(self, stage: VolumeStage) -> None:
        """Count an error of volume scheduling."""
        self._families.counters["scheduler_volume_scheduling_stage_error_total"].labels(stage).inc()

    def claim_created(self, *, failed: bool) -> None:
        """Count a claim that was to be created for a pod's extended resources."""
        result = "failure" if failed else "success"
        counters = self._families.counters
        if CLAIMS_CREATED_BY_ANY.name in counters:
            counters[CLAIMS_CREATED_BY_ANY.name].labels(result, "false", "", "Pod").inc()
        else:
            counters[CLAIMS_CREATED.name].labels(result).inc()

    def devices_awaited(
        self, profile: str, drivers: Iterable[str], outcome: DeviceWait, seconds: float
    ) -> None:
        """Count a wait, and observe how long it took, for each driver."""
        families = self._families
        for driver in drivers:
            labels = profile, driver, outcome
            families.counters["scheduler_dra_bindingconditions_allocations_total"].labels(*labels).inc()
            waited = families.histograms["scheduler_dra_bindingconditions_wait_duration_seconds"]
            waited.labels(*labels).observe(seconds)
