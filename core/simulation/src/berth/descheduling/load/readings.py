"""Answers of metrics-server and Prometheus as numbers by node; nothing here asks for them.

load-aware reads the same answers in TypeScript. One table of answers, tests/load/readings.json, holds both to
the same numbers and refusals.

Source: metrics.k8s.io/v1beta1 (k8s.io/metrics); Prometheus' HTTP API, instant queries.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple

import msgspec

from berth.objects.pods.pod_requests import in_units
from berth.objects.quantity import InvalidQuantityError, nanos

MAX_SHOWN: Final = 200
"""Characters of an answer that a message shows."""
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError)
_BRACKETED: Final = re.compile(r"\[(.*)\](?::[0-9]+)?\Z")
_WITH_PORT: Final = re.compile(r"([^:]*):[0-9]+\Z")


class ReadingError(Exception):
    """An answer is none to what was asked; the text says what it is."""


class Reading(NamedTuple):
    """What is in use, by resource, and since when that is known. Units: thousandths of a core, bytes."""

    at: datetime
    amounts: Mapping[str, int]


class Sample(NamedTuple):
    """A number that Prometheus has of a node."""

    at: datetime
    value: float


class _Named(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""


class _NodeMetrics(msgspec.Struct, frozen=True):
    metadata: _Named
    timestamp: datetime
    usage: dict[str, str]


class _ContainerMetrics(msgspec.Struct, frozen=True):
    usage: dict[str, str]


class _PodMetrics(msgspec.Struct, frozen=True):
    metadata: _Named
    timestamp: datetime
    containers: tuple[_ContainerMetrics, ...]


class _Series(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[Annotated[float, msgspec.Meta(ge=0, lt=2**36)], str]


class _Data(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType", default="")
    result: msgspec.Raw = msgspec.Raw(b"")


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    data: _Data | None = None


def node_readings(items: Iterable[bytes]) -> dict[str, Reading]:
    """What NodeMetrics say, by the node's name; one that is no NodeMetrics hides no other."""
    found = {}
    for item in items:
        try:
            metrics = msgspec.json.decode(item, type=_NodeMetrics)
            found[metrics.metadata.name] = Reading(_aware(metrics.timestamp), _amounts([metrics.usage]))
        except (*_UNREADABLE, InvalidQuantityError):
            continue
    return found


def pod_readings(items: Iterable[bytes]) -> dict[str, Reading]:
    """What PodMetrics say, by namespace/name: the sum over the containers that all have each resource."""
    found = {}
    for item in items:
        try:
            metrics = msgspec.json.decode(item, type=_PodMetrics)
            amounts = _amounts([container.usage for container in metrics.containers])
        except (*_UNREADABLE, InvalidQuantityError):
            continue
        key = f"{metrics.metadata.namespace}/{metrics.metadata.name}"
        found[key] = Reading(_aware(metrics.timestamp), amounts)
    return found


def samples_of(body: bytes, label: str) -> dict[str, Sample]:
    """The samples of an answer to an instant query, by the node that `label` names; a port is no part of it.

    Raises: ReadingError where the answer is no vector, or a sample lacks the label.
    """
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except _UNREADABLE:
        raise ReadingError(f"answered no JSON of an instant query: {_shown(body)}") from None
    data = answer.data or _Data()
    if answer.status != "success" or data.result_type != "vector":
        raise ReadingError(
            f"expected a vector, got {answer.error[:MAX_SHOWN] or data.result_type or 'nothing'}"
        )
    try:
        series = msgspec.json.decode(data.result, type=list[_Series])
    except _UNREADABLE as error:
        raise ReadingError(f"expected a vector, got {error}") from None
    return dict(_sampled(each, label) for each in series if math.isfinite(_number(each)))


def _sampled(series: _Series, label: str) -> tuple[str, Sample]:
    if label not in series.metric:
        labels = ", ".join(series.metric)[:MAX_SHOWN] or "no label"
        raise ReadingError(f"a series has {labels}; let the query label each by {label}, the node's name")
    return host_of(series.metric[label]), Sample(
        datetime.fromtimestamp(series.value[0], UTC), _number(series)
    )


def _number(series: _Series) -> float:
    try:
        return float(series.value[1])
    except ValueError:
        return math.nan


def host_of(label: str) -> str:
    """A node's name or address, of a label that may carry a port."""
    found = _BRACKETED.match(label) or _WITH_PORT.match(label)
    return found[1] if found else label


def _amounts(usages: list[dict[str, str]]) -> dict[str, int]:
    known = set.intersection(*map(set, usages)) if usages else set()
    return in_units({name: sum(nanos(usage[name]) for usage in usages) for name in sorted(known)})


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _shown(body: bytes) -> str:
    return body[:MAX_SHOWN].decode(errors="replace")
