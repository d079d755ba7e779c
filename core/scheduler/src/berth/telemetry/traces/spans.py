"""From a finished cycle record to the spans of one trace.

    schedule pod                      the root: enqueued to the end of the attempt; a link to the one before
    ├── queue wait
    ├── scheduling cycle
    │   └── Filter, Score, ...        an extension point
    │       └── NodeAffinity, ...     a plugin, which begins with the first call of it
    │           └── ...               a call of a sidecar, whose own spans hang below it
    └── binding cycle
        └── PreBind, Bind, ...

Runs beside the scheduling loop, long after the attempt: it reads nothing but the record. Exporters take the
spans from here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord, Interval
from berth.framework.status import SUCCESS, Code
from berth.telemetry.traces.trace_shape import TraceShape

ROOT_NAME = "schedule pod"
QUEUE_WAIT_NAME = "queue wait"

TRACE_ID_BYTES = 16
INTERNAL, CLIENT = 1, 3
UNSET, ERROR = 0, 2

EARLIER: Mapping[str, Any] = {"berth.link": "earlier attempt"}
_PLAIN = frozenset({str, int, float, bool})


class SpanStatus(msgspec.Struct, frozen=True, gc=False):
    """A span's status with OTLP's codes: 0 unset, 1 ok, 2 error."""

    code: int = UNSET
    message: str = ""


class SpanLink(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A span of another trace that this one goes on from."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any] = {}


class Span(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A span with OTLP's field names; encoded as JSON it is a line of a trace file.

    Ids are lower-case hex, a root's parent is empty. Units: nanoseconds since the epoch.
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    kind: int
    start_time_unix_nano: int
    end_time_unix_nano: int
    attributes: dict[str, Any]
    resource: Mapping[str, Any]
    status: SpanStatus
    links: tuple[SpanLink, ...] = ()


UNSET_STATUS = SpanStatus()


class EndedCycle(msgspec.Struct, frozen=True):
    """A finished record, and its status in words.

    A rejection is put into words from the snapshot of the moment, so that is done when the attempt ends.
    """

    record: CycleRecord
    message: str


def spans_of(cycle: EndedCycle, resource: Mapping[str, Any]) -> list[Span]:
    """The trace of an attempt, root first; every child lies within its parent."""
    record = cycle.record
    shape = TraceShape.of(record)
    trace_id, root_id = record.trace_id.hex(), record.root_span_id.hex()
    return [
        Span(
            trace_id,
            root_id,
            "",
            ROOT_NAME,
            INTERNAL,
            shape.began,
            shape.ended,
            root_attributes(cycle),
            resource,
            root_status(cycle),
            links_of(record),
        ),
        Span(
            trace_id,
            shape.queue_wait_id.hex(),
            root_id,
            QUEUE_WAIT_NAME,
            INTERNAL,
            shape.began,
            shape.dequeued,
            {},
            resource,
            UNSET_STATUS,
        ),
        *_interval_spans(cycle, shape, resource),
    ]


def root_status(cycle: EndedCycle) -> SpanStatus:
    """Only an attempt that broke has a status: a rejection is an answer."""
    return SpanStatus(ERROR, cycle.message) if cycle.record.result == "error" else UNSET_STATUS


def links_of(record: CycleRecord) -> tuple[SpanLink, ...]:
    """The attempt before this one, which may not have been sampled."""
    trace_id, span_id = record.earlier[:TRACE_ID_BYTES], record.earlier[TRACE_ID_BYTES:]
    return (SpanLink(trace_id.hex(), span_id.hex(), EARLIER),) if record.earlier else ()


def root_attributes(cycle: EndedCycle) -> dict[str, Any]:
    """What the root says: which pod it was about, what came of it, and where."""
    record, metadata = cycle.record, cycle.record.pod.metadata
    attributes: dict[str, Any] = {
        "k8s.pod.name": metadata.name,
        "k8s.namespace.name": metadata.namespace,
        "k8s.pod.uid": metadata.uid,
        "berth.profile": record.profile,
        "berth.attempt": record.attempt,
        "berth.result": record.result,
        "berth.nodes": record.node_count,
        "berth.nodes.evaluated": record.evaluated_count,
        "berth.nodes.feasible": record.feasible_count,
    }
    if record.node_name:
        attributes["k8s.node.name"] = record.node_name
    if record.score is not None:
        attributes["berth.score"] = int(record.score)
    if record.status is not None and record.status.plugin:
        attributes["berth.plugin"] = record.status.plugin
    if cycle.message:
        attributes["berth.message"] = cycle.message
    return attributes


def _interval_spans(cycle: EndedCycle, shape: TraceShape, resource: Mapping[str, Any]) -> list[Span]:
    record = cycle.record
    intervals, offset = record.intervals, record.wall_offset_ns
    trace_id, root_id = record.trace_id.hex(), record.root_span_id.hex()
    ids = [each.hex() for each in shape.ids]
    return [
        Span(
            trace_id,
            span_id,
            ids[parent] if parent >= 0 else root_id,
            interval.name,
            CLIENT if interval.span_id else INTERNAL,
            shape.starts[index] + offset,
            end + offset,
            attributes_of(interval, extension_point(intervals, interval)),
            resource,
            status_of(interval, cycle.message if index in shape.broken else None),
        )
        for index, (interval, span_id, parent, end) in enumerate(
            zip(intervals, ids, shape.parents, shape.ends, strict=True)
        )
    ]


def extension_point(intervals: Sequence[Interval], interval: Interval) -> str:
    """The extension point that a plugin's interval is part of; empty for all others."""
    if interval.parent < 0:
        return ""
    around = intervals[interval.parent]
    return around.name if around.parent >= 0 else ""


def attributes_of(interval: Interval, point: str) -> dict[str, Any]:
    """What the span of an interval says of it; `point` is its extension point, if it is a plugin's."""
    found: dict[str, Any] = {"berth.extension_point": point} if point else {}
    status = interval.status
    if status is not None and status is not SUCCESS and status.code is not Code.SUCCESS:
        found["berth.status"] = str(status.code)
        if status.own_reasons:
            found["berth.message"] = ", ".join(status.own_reasons)
    for key, value in interval.attributes.items():
        found[key if "." in key else f"berth.{key}"] = value if type(value) in _PLAIN else _plain(value)
    return found


def _plain(value: Any) -> Any:
    """A value that OTLP and JSON can carry; NumPy's scalars become Python's."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", 1) == 0 else str(value)


def status_of(interval: Interval, why_broken: str | None) -> SpanStatus:
    """Only what broke, or was cut short by what the attempt says, has a status."""
    if why_broken is not None:
        return SpanStatus(ERROR, why_broken or "did not end")
    status = interval.status
    if status is not None and status.code is Code.ERROR:
        return SpanStatus(ERROR, status.message)
    return UNSET_STATUS
