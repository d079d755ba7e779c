"""Figures of asynchronous API calls, as Prometheus wants them; there are none without SchedulerAsyncAPICalls.

Source: pkg/scheduler/metrics/metrics.go AsyncAPICallsTotal (Kubernetes v1.36); KEP-5229.
"""

from berth.binding.api_dispatcher import CallMetrics
from berth.telemetry.metrics.metric_families import Families


class PrometheusCallMetrics(CallMetrics):
    """What the dispatcher is given as its CallMetrics."""

    def __init__(self, families: Families) -> None:
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families

    def executed(self, call_type: str, result: str, seconds: float) -> None:
        """Count a call and observe how long it took."""
        families = self._families
        families.counters["scheduler_async_api_call_execution_total"].labels(call_type, result).inc()
        duration = families.histograms["scheduler_async_api_call_execution_duration_seconds"]
        duration.labels(call_type, result).observe(seconds)
