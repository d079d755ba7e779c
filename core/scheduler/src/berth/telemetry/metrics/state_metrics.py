"""Metrics that mirror the state of others: read when metrics are collected, and no concern of a reset.

Source: pkg/scheduler/metrics/metrics.go, backend/cache/cache.go updateMetrics (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class MirroredMetric(NamedTuple):
    """A gauge, or a counter, that is read from its owner: label values to numbers."""

    name: str
    text: str
    labels: tuple[str, ...]
    read: Callable[[], Mapping[Any, float]]
    counts: bool = False

    def family(self) -> Metric:
        """The values of the moment."""
        kind = CounterMetricFamily if self.counts else GaugeMetricFamily
        family = kind(self.name, self.text, labels=self.labels)
        # The owner's thread goes on counting; only a copy made in one step keeps its size meanwhile.
        for labels, number in dict(self.read()).items():
            family.add_metric(labels, number)
        return family


class StateCollector(Collector):
    """Hands the mirrored gauges to the registry."""

    def __init__(self) -> None:
        self.mirrored: list[MirroredMetric] = []

    def collect(self) -> Iterable[Metric]:
        """Read everything once."""
        return [each.family() for each in self.mirrored]

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: what there is to read may not be there yet."""
        return []
