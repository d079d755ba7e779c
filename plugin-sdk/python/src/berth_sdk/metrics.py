"""What a plugin counts, in Prometheus' text format; each line is made when it is read."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from berth_sdk.errors import CallError, ContractError

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""The upper bounds of the duration buckets."""
_CODES: Mapping[type[BaseException], str] = {
    CallError: "FAILED_PRECONDITION",
    ContractError: "INTERNAL",
    ValueError: "INVALID_ARGUMENT",
    TimeoutError: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True)
class Metric:
    """Something that a plugin counts or measures itself.

    The name is of letters, digits and underscores, that of a counter ends with `_total`; `values` are pairs
    of labels and a number.
    """

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    values: Iterable[tuple[Mapping[str, str], float]]


@dataclass(frozen=True)
class Held:
    """What a plugin holds of the cluster."""

    generation: int
    nodes: int
    pods: int
    other: int


@dataclass(slots=True)
class _Durations:
    buckets: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    sum: float = 0.0


class Meter:
    """Counters of one plugin."""

    def __init__(self, plugin: str, version: str) -> None:
        self._info = {"plugin": plugin, "version": version}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, _Durations] = {}
        self._refusals: Counter[str] = Counter()
        self._passed = self._rejected = 0

    def answered(self, method: str, code: str, seconds: float) -> None:
        """A call was answered, with a gRPC code by its name."""
        self._calls[method, code] += 1
        durations = self._durations.get(method)
        if durations is None:
            durations = self._durations[method] = _Durations()
        durations.buckets[bisect_left(SECONDS, seconds)] += 1
        durations.sum += seconds

    def verdicts(self, passed: int, rejected: int) -> None:
        """So many nodes passed or were turned down."""
        self._passed += passed
        self._rejected += rejected

    def refused(self, reason: str) -> None:
        """A message of the state stream was refused."""
        self._refusals[reason] += 1

    def text(self, held: Held, own: Iterable[Metric] = ()) -> str:
        """Everything, with the author's own metrics at the end.

        Raises: ValueError: a name of these can't be one.
        """
        return generate_latest(_Collected([*self._families(held), *map(_own, own)])).decode()

    def _families(self, held: Held) -> Iterator[Family]:
        yield _family("berth_plugin_info", "gauge", "The plugin.", [(self._info, 1)])
        calls = [({"method": method, "code": code}, n) for (method, code), n in self._calls.items()]
        about = "Calls answered, by method and gRPC code."
        yield _family("berth_plugin_answered_calls_total", "counter", about, calls)
        yield self._histogram()
        about = "Nodes that passed Filter or were turned down."
        verdicts = [({"verdict": "passed"}, self._passed), ({"verdict": "rejected"}, self._rejected)]
        yield _family("berth_plugin_node_verdicts_total", "counter", about, verdicts)
        about = "Messages of the state stream that were refused, by reason."
        refusals = [({"reason": reason}, n) for reason, n in self._refusals.items()]
        yield _family("berth_plugin_state_refusals_total", "counter", about, refusals)
        about = "The generation of the state that is held, 0 if none is."
        yield _family("berth_plugin_state_generation", "gauge", about, [({}, held.generation)])
        objects = [({"kind": kind}, getattr(held, kind)) for kind in ("nodes", "pods", "other")]
        yield _family("berth_plugin_state_objects", "gauge", "What is held of the cluster.", objects)

    def _histogram(self) -> Family:
        about = "Time to answer a call, waiting for state included."
        family = HistogramMetricFamily("berth_plugin_call_duration_seconds", about, labels=["method"])
        for method, durations in self._durations.items():
            below = zip((*map(str, SECONDS), "+Inf"), accumulate(durations.buckets), strict=True)
            family.add_metric([method], list(below), durations.sum)
        return family


class _Collected(CollectorRegistry):
    """Families that stand for a registry: to count in a real one costs a call more."""

    def __init__(self, families: Iterable[Family]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[Family]:
        """Give them."""
        return self._families


def code_of(kind: type[BaseException]) -> str:
    """Return the name of the gRPC code that an exception of a call ends as."""
    return next((code for known, code in _CODES.items() if issubclass(kind, known)), "CANCELLED")


def _family(
    name: str, kind: str, explanation: str, values: Iterable[tuple[Mapping[str, str], float]]
) -> Family:
    family = Family(name.removesuffix("_total") if kind == "counter" else name, explanation, kind)
    for labels, value in values:
        family.add_sample(name, dict(labels), value)
    return family


def _own(metric: Metric) -> Family:
    return _family(metric.name, metric.kind, metric.help, metric.values)
