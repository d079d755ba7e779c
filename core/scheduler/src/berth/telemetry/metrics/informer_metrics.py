"""Mirrors of kinds of objects by client-go's names for informers, read when metrics are collected.

Source: k8s.io/component-base/metrics/prometheus/clientgo/fifo/metrics.go, client-go tools/cache/store.go
(Kubernetes v1.37, kubernetes/kubernetes#140511).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

NAME = "kube-scheduler"
LABELS = ("name", "group", "version", "resource")
DIGITS = 15
"""So many of a resource version are shown, the least significant ones: a float has no more."""


class Handled(Protocol):
    """What a mirror's handler was given."""

    @property
    def queued(self) -> int:
        """How many wait for it."""

    @property
    def counts(self) -> list[int]:
        """How many it was given, by bucket of their time, the last one above all bounds."""

    @property
    def total(self) -> float:
        """Their time in all. Units: seconds."""

    def clear(self) -> None:
        """Start afresh."""


class Kind(Protocol):
    """A kind of object."""

    @property
    def group(self) -> str:
        """Its API group, empty for the core one."""

    @property
    def version(self) -> str:
        """Its API version."""

    @property
    def plural(self) -> str:
        """Its resource."""


class Mirrored(NamedTuple):
    """One kind that is mirrored."""

    kind: Kind
    handled: Handled
    reached: Callable[[], str]
    """Gives the resource version that the mirror has reached, empty before the first list."""


class InformerCollector(Collector):
    """Shows each mirror."""

    def __init__(self) -> None:
        self._mirrors: list[Mirrored] = []
        self._bounds: Sequence[float] = ()

    def watch(self, mirrors: Iterable[Mirrored], bounds: Sequence[float]) -> None:
        """Show these mirrors, too, which all have the same buckets."""
        self._bounds = bounds
        self._mirrors += mirrors

    def reset(self) -> None:
        """Let the histograms start afresh."""
        for mirror in self._mirrors:
            mirror.handled.clear()

    def collect(self) -> Iterator[Metric]:
        """The values of the moment."""
        if self._mirrors:
            yield self._queued()
            yield self._latency()
            yield self._versions()

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: mirrors come later."""
        return []

    def _queued(self) -> Metric:
        text = "[ALPHA] Events and listed objects that were read and are not handled yet."
        family = GaugeMetricFamily("informer_queued_items", text, labels=LABELS)
        for mirror in self._mirrors:
            family.add_metric(_labels(mirror.kind), mirror.handled.queued)
        return family

    def _latency(self) -> Metric:
        text = "[ALPHA] From the moment an event's turn comes to the moment it is handled."
        family = HistogramMetricFamily("informer_processing_latency_seconds", text, labels=LABELS)
        shown = [*map(floatToGoString, self._bounds), "+Inf"]
        for mirror in self._mirrors:
            below = map(float, accumulate(mirror.handled.counts.copy()))
            buckets = list(zip(shown, below, strict=True))
            family.add_metric(_labels(mirror.kind), buckets, mirror.handled.total)
        return family

    def _versions(self) -> Metric:
        text = f"[ALPHA] The last {DIGITS} digits of the resource version that the mirror has reached."
        family = GaugeMetricFamily("informer_store_resource_version", text, labels=LABELS)
        for mirror in self._mirrors:
            version = mirror.reached()
            if version.isdecimal():
                family.add_metric(_labels(mirror.kind), int(version[-DIGITS:]))
        return family


def _labels(kind: Kind) -> tuple[str, str, str, str]:
    return NAME, kind.group, kind.version, kind.plural
