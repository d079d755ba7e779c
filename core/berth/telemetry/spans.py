"""From a finished cycle record to the spans of one trace.

    schedule pod                      the root: enqueued to the end of the attempt; a link to the one before
    ├── queue wait
    ├── scheduling cycle
    │   └── Filter, Score, ...        an extension point
    │       └── NodeAffinity, ...     a plugin
    │           └── ...               a call of another process, whose own spans hang below it
    └── binding cycle
        └── PreBind, Bind, ...

Runs beside the scheduling loop, long after the attempt: it reads nothing but the record. Exporters take the
spans from here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from berth.framework.cycle_record import CycleRecord, Interval
from berth.framework.status import SUCCESS, Code

ROOT_NAME = "schedule pod"
QUEUE_WAIT_NAME = "queue wait"

ID_DIGITS = 16
TRACE_ID_BYTES = 16
INTERNAL, CLIENT = 1, 3
UNSET, ERROR = 0, 2

_EARLIER: Mapping[str, Any] = {"berth.link": "earlier attempt"}
_PLAIN = frozenset({str, int, float, bool})


class SpanStatus(msgspec.Struct, frozen=True, gc=False):
    """A span's status with OTLP's codes: 0 unset, 1 ok, 2 error."""

    code: int = UNSET
    message: str = ""


class Link(msgspec.Struct, frozen=True, rename="camel", gc=False):
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
    links: tuple[Link, ...] = ()


_UNSET = SpanStatus()


@dataclass(frozen=True, slots=True)
class EndedCycle:
    """A finished record, and its status in words.

    A rejection is put into words from the snapshot of the moment, so that is done when the attempt ends.
    """

    record: CycleRecord
    message: str


def spans_of(cycle: EndedCycle, resource: Mapping[str, Any]) -> list[Span]:
    """The trace of an attempt, root first; every child lies within its parent."""
    record = cycle.record
    parents = parents_of(record.intervals)
    ends = _ends(record, parents)
    return [
        _root(cycle, max(record.ended_ns, record.dequeued_ns, *ends), resource),
        _queue_wait(record, resource),
        *_interval_spans(record, parents, ends, resource),
    ]


def parents_of(intervals: Sequence[Interval]) -> list[int]:
    """The index of the interval that each one is part of, -1 for the root.

    Calls of other processes are recorded beside the extension points; the point that made one is its parent.
    """
    parents = [interval.parent for interval in intervals]
    for index, interval in enumerate(intervals):
        if interval.span_id and (interval.parent < 0 or parents[interval.parent] < 0):
            parents[index] = _caller(intervals, index)
    return parents


def _caller(intervals: Sequence[Interval], index: int) -> int:
    """The innermost plugin of the call's name, or extension point, that lasted all the while."""
    call = intervals[index]
    plugin = call.name.partition(" ")[0]
    for at in range(index - 1, -1, -1):
        around = intervals[at]
        lasts = around.started_ns <= call.started_ns and call.ended_ns <= (around.ended_ns or call.ended_ns)
        if not lasts or around.span_id:
            continue
        if around.name == plugin or (around.parent >= 0 and intervals[around.parent].parent < 0):
            return at
    return call.parent


def _ends(record: CycleRecord, parents: Sequence[int]) -> list[int]:
    """When each interval ended, stretched over its children, which never begin before it.

    A stretch of work that an exception cut short ended, as far as is known, with the one around it.
    """
    ends: list[int] = []
    for interval, around in zip(record.intervals, parents, strict=True):
        end, parent = interval.ended_ns, around
        if not end:
            end = ends[parent] if parent >= 0 else record.ended_ns
        end = max(end, interval.started_ns)
        ends.append(end)
        while parent >= 0 and ends[parent] < end:
            ends[parent] = end
            parent = parents[parent]
    return ends


def _root(cycle: EndedCycle, end: int, resource: Mapping[str, Any]) -> Span:
    record = cycle.record
    return Span(
        record.trace_id.hex(),
        record.root_span_id.hex(),
        "",
        ROOT_NAME,
        INTERNAL,
        min(record.enqueued_ns, record.dequeued_ns) + record.wall_offset_ns,
        end + record.wall_offset_ns,
        _root_attributes(cycle),
        resource,
        SpanStatus(ERROR, cycle.message) if record.result == "error" else _UNSET,
        _links(record),
    )


def _links(record: CycleRecord) -> tuple[Link, ...]:
    """The attempt before this one, which may not have been sampled."""
    trace_id, span_id = record.earlier[:TRACE_ID_BYTES], record.earlier[TRACE_ID_BYTES:]
    return (Link(trace_id.hex(), span_id.hex(), _EARLIER),) if record.earlier else ()


def _root_attributes(cycle: EndedCycle) -> dict[str, Any]:
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


def _queue_wait(record: CycleRecord, resource: Mapping[str, Any]) -> Span:
    offset = record.wall_offset_ns
    return Span(
        record.trace_id.hex(),
        _span_ids(record, 1)[0],
        record.root_span_id.hex(),
        QUEUE_WAIT_NAME,
        INTERNAL,
        min(record.enqueued_ns, record.dequeued_ns) + offset,
        record.dequeued_ns + offset,
        {},
        resource,
        _UNSET,
    )


def _interval_spans(
    record: CycleRecord, parents: Sequence[int], ends: Sequence[int], resource: Mapping[str, Any]
) -> list[Span]:
    intervals, offset = record.intervals, record.wall_offset_ns
    trace_id, root_id = record.trace_id.hex(), record.root_span_id.hex()
    ids = _span_ids(record, 1 + len(intervals))[1:]
    for index, interval in enumerate(intervals):
        if interval.span_id:
            ids[index] = interval.span_id.hex()
    return [
        Span(
            trace_id,
            span_id,
            ids[parent] if parent >= 0 else root_id,
            interval.name,
            CLIENT if interval.span_id else INTERNAL,
            interval.started_ns + offset,
            end + offset,
            _attributes(intervals, interval),
            resource,
            _UNSET if interval.status is SUCCESS and interval.ended_ns else _status(interval),
        )
        for interval, span_id, parent, end in zip(intervals, ids, parents, ends, strict=True)
    ]


def _span_ids(record: CycleRecord, count: int) -> list[str]:
    """Span ids that follow upon the root's: distinct, and the same at every export."""
    first = np.uint64(int.from_bytes(record.root_span_id, "big"))
    digits = (first + np.arange(1, count + 1, dtype=np.uint64)).astype(">u8").tobytes().hex()
    return [digits[at : at + ID_DIGITS] for at in range(0, count * ID_DIGITS, ID_DIGITS)]


def _attributes(intervals: Sequence[Interval], interval: Interval) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if interval.parent >= 0:
        around = intervals[interval.parent]
        if around.parent >= 0:
            found["berth.extension_point"] = around.name
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


def _status(interval: Interval) -> SpanStatus:
    if not interval.ended_ns:
        return SpanStatus(ERROR, "did not end")
    status = interval.status
    if status is not None and status.code is Code.ERROR:
        return SpanStatus(ERROR, status.message)
    return _UNSET
