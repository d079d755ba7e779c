"""Requests to API servers by client-go's names: read from the transports when metrics are collected.

Source: k8s.io/component-base/metrics/prometheus/restclient/metrics.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class RequestDurations(Protocol):
    """How many requests took how long."""

    @property
    def counts(self) -> list[int]:
        """By bucket, the last one above all bounds."""

    @property
    def total(self) -> float:
        """In all. Units: seconds."""


class Requests(Protocol):
    """What one transport has counted: by (code, method), and durations by method."""

    @property
    def codes(self) -> Mapping[tuple[str, str], int]:
        """Requests by status code and method."""

    @property
    def durations(self) -> Mapping[str, RequestDurations]:
        """How long they took, by method."""

    def clear(self) -> None:
        """Start afresh."""


class RequestCollector(Collector):
    """Adds up the transports to each host."""

    def __init__(self) -> None:
        self._sources: list[tuple[str, Requests]] = []
        self._bounds: Sequence[float] = ()

    def watch(self, host: str, sources: Iterable[Requests], bounds: Sequence[float]) -> None:
        """Show these transports, too, which all have the same buckets."""
        self._bounds = bounds
        self._sources += [(host, source) for source in sources]

    def reset(self) -> None:
        """Let all start afresh."""
        for _, source in self._sources:
            source.clear()

    def collect(self) -> Iterator[Metric]:
        """The sums of the moment."""
        if self._sources:
            yield self._requests()
            yield self._durations()

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: transports come later."""
        return []

    def _requests(self) -> Metric:
        text = "[ALPHA] Requests to the API server, by status code, method and host."
        family = CounterMetricFamily("rest_client_requests", text, labels=("code", "method", "host"))
        sums: Counter[tuple[str, str, str]] = Counter()
        for host, source in self._sources:
            for (code, method), count in dict(source.codes).items():
                sums[code, method, host] += count
        for labels, count in sums.items():
            family.add_metric(labels, count)
        return family

    def _durations(self) -> Metric:
        text = "[ALPHA] From sending a request to its answer, by verb and host."
        name = "rest_client_request_duration_seconds"
        family = HistogramMetricFamily(name, text, labels=("verb", "host"))
        sums: dict[tuple[str, str], tuple[list[int], float]] = {}
        for host, source in self._sources:
            for verb, durations in dict(source.durations).items():
                counts, total = sums.get((verb, host)) or ([0] * len(durations.counts), 0.0)
                added = [a + b for a, b in zip(counts, durations.counts.copy(), strict=True)]
                sums[verb, host] = added, total + durations.total
        shown = [*map(floatToGoString, self._bounds), "+Inf"]
        for labels, (counts, total) in sums.items():
            below = map(float, accumulate(counts))
            family.add_metric(labels, list(zip(shown, below, strict=True)), total)
        return family
