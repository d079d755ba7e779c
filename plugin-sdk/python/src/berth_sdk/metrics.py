"""What a plugin counts, in Prometheus' text format; each line is made when it is read."""

import json
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

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
        """Everything, with the author's own metrics at the end."""
        calls = [({"method": method, "code": code}, n) for (method, code), n in sorted(self._calls.items())]
        verdicts = [({"verdict": "passed"}, self._passed), ({"verdict": "rejected"}, self._rejected)]
        refusals = [({"reason": reason}, n) for reason, n in sorted(self._refusals.items())]
        objects = [({"kind": kind}, getattr(held, kind)) for kind in ("nodes", "pods", "other")]
        parts = (
            _lines("berth_plugin_info", "gauge", "The plugin.", [(self._info, 1)]),
            _lines("berth_plugin_calls_total", "counter", "Calls answered, by method and gRPC code.", calls),
            self._histogram(),
            _lines(
                "berth_plugin_node_verdicts_total",
                "counter",
                "Nodes that passed Filter or were turned down.",
                verdicts,
            ),
            _lines(
                "berth_plugin_state_refusals_total",
                "counter",
                "Messages of the state stream that were refused, by reason.",
                refusals,
            ),
            _lines(
                "berth_plugin_state_generation",
                "gauge",
                "The generation of the state that is held, 0 if none is.",
                [({}, held.generation)],
            ),
            _lines("berth_plugin_state_objects", "gauge", "What is held of the cluster.", objects),
            *(_lines(each.name, each.kind, each.help, each.values) for each in own),
        )
        return "".join(f"{line}\n" for part in parts for line in part)

    def _histogram(self) -> Iterator[str]:
        name = "berth_plugin_call_duration_seconds"
        yield from _lines(name, "histogram", "Time to answer a call, waiting for state included.", ())
        for method, durations in sorted(self._durations.items()):
            below = 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), durations.buckets, strict=True):
                below += count
                yield f"{name}_bucket{_labels({'method': method, 'le': bound})} {below}"
            yield f"{name}_sum{_labels({'method': method})} {durations.sum}"
            yield f"{name}_count{_labels({'method': method})} {below}"


class Answering:
    """Counts a call by how its block ends."""

    __slots__ = ("_meter", "_method", "_started")

    def __init__(self, meter: Meter, method: str) -> None:
        self._meter, self._method, self._started = meter, method, time.perf_counter()

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Count the call."""
        code = "OK" if kind is None else _code(kind)
        self._meter.answered(self._method, code, time.perf_counter() - self._started)


def _code(kind: type[BaseException]) -> str:
    return next((code for known, code in _CODES.items() if issubclass(kind, known)), "CANCELLED")


def _lines(
    name: str, kind: str, explanation: str, values: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {name} {explanation}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        yield f"{name}{_labels(labels)} {value}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return (
        "{"
        + ",".join(f"{name}={json.dumps(text, ensure_ascii=False)}" for name, text in labels.items())
        + "}"
    )
