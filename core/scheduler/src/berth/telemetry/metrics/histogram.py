"""Histograms that cost two additions an observation.

A pod is observed in some twenty of them; prometheus_client takes a lock for each of their parts and looks at
one bucket after the other. These belong to the one loop that observes, and are shown by the same library, in
any thread: series and counts are copied in one step, and bucket counts are those of one moment. The sum may
be one observation ahead or behind. A bucket shows the last traced attempt that fell into it as its exemplar,
in OpenMetrics' text alone.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString


class Series:
    """One series of a histogram: how many values fell into which bucket, and their sum."""

    __slots__ = ("_bounds", "counts", "exemplars", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.exemplars: dict[int, Exemplar] = {}
        """By the bucket's index."""
        self.counts = [0] * (len(bounds) + 1)
        """Not added up; the last one is of values above all bounds."""
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value that many times, in the first bucket whose bound it does not exceed."""
        self.counts[bisect_left(self._bounds, value)] += times
        self.total += value * times

    def exemplify(self, value: float, trace_id: bytes, span_id: bytes, at_seconds: float) -> None:
        """Show this span as an example of values in the value's bucket. Units: seconds since the epoch."""
        labels = {"trace_id": trace_id.hex(), "span_id": span_id.hex()}
        self.exemplars[bisect_left(self._bounds, value)] = Exemplar(labels, value, at_seconds)


class Histogram(Collector):
    """A family of such series, for a registry; without labels it is one series, there from the start."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._name, self._text, self._labels, self._bounds = name, text, labels, bounds
        self._shown_bounds = [*map(floatToGoString, bounds), "+Inf"]
        self._series: dict[tuple[str, ...], Series] = {}
        if not labels:
            self.labels()

    def labels(self, *values: str) -> Series:
        """The series of these label values, in the order of the family's labels."""
        found = self._series.get(values)
        if found is None:
            if len(values) != len(self._labels):
                raise ValueError(f"{self._name} has the labels {self._labels}, not {values}")
            found = self._series[values] = Series(self._bounds)
        return found

    def observe(self, value: float) -> None:
        """Count a value in a family without labels."""
        self.labels().observe(value)

    def describe(self) -> Iterator[Metric]:
        """The family without its series, by which a registry knows its names."""
        yield self._family()

    def collect(self) -> Iterator[Metric]:
        """The family as it is now."""
        family = self._family()
        for values, series in self._series.copy().items():
            counts, exemplars = accumulate(series.counts.copy()), series.exemplars.copy()
            buckets = [
                (bound, float(count), exemplars[at]) if at in exemplars else (bound, float(count))
                for at, (bound, count) in enumerate(zip(self._shown_bounds, counts, strict=True))
            ]
            family.add_metric(values, buckets, series.total)
        yield family

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._text, labels=self._labels)
