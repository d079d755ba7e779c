"""The spans of an attempt as OTLP's bytes, made from its record in one pass.

An attempt has some thirty-five spans, most of which say what those of the attempt before said. What spans say
is kept as bytes, up to a bound: only ids and times are new.

Source: opentelemetry/proto/trace/v1/trace.proto, opentelemetry/proto/common/v1/common.proto (OTLP 1.9).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from berth.framework.attempts.cycle_record import Interval
from berth.framework.status import SUCCESS, Code, Status
from berth.telemetry.traces.spans import (
    CLIENT,
    INTERNAL,
    QUEUE_WAIT_NAME,
    ROOT_NAME,
    TRACE_ID_BYTES,
    EndedCycle,
    SpanLink,
    SpanStatus,
    attributes_of,
    extension_point,
    links_of,
    root_attributes,
    root_status,
    status_of,
)
from berth.telemetry.traces.trace_shape import ID_BYTES, TraceShape

SCOPE_NAME = "berth"

KEPT_PARTS = 4096
KEPT_ATTRIBUTES = 4096
MAX_KEPT_CHARACTERS = 64

# Tags of fields: the number, shifted by three bits, and the kind of what follows.
_RESOURCE_SPANS = _RESOURCE = _RESOURCE_ATTRIBUTE = b"\x0a"
_SCOPE_SPANS, _SCOPE, _SCOPE_NAME, _SPAN = b"\x12", b"\x0a", b"\x0a", b"\x12"
_TRACE_ID, _SPAN_ID, _PARENT_SPAN_ID, _NAME, _KIND = b"\x0a", b"\x12", b"\x22", b"\x2a", b"\x30"
_START_TIME, _END_TIME = 0x39, 0x41
_ATTRIBUTE, _LINK, _STATUS, _SPAN_FLAGS = b"\x4a", b"\x6a", b"\x7a", b"\x85\x01"
_LINK_ATTRIBUTE, _LINK_FLAGS = b"\x22", b"\x35"
_STATUS_MESSAGE, _STATUS_CODE = b"\x12", b"\x18"
_KEY, _VALUE = b"\x0a", b"\x12"
_STRING, _BOOL, _INT, _DOUBLE, _ARRAY, _ITEM = b"\x0a", b"\x10", b"\x18", b"\x21", b"\x2a", b"\x0a"

# It is known whether the parent is of another process: it is not.
_IS_REMOTE_IS_KNOWN = (0x100).to_bytes(4, "little")

_SEVEN_BITS, _MORE = 0x7F, 0x80
_INT64 = 1 << 63
_ID_BYTES = bytes((ID_BYTES,))
_SPAN_ID_OPENING, _PARENT_OPENING = _SPAN_ID + _ID_BYTES, _PARENT_SPAN_ID + _ID_BYTES
_TIMES = Struct("<BQBQ")
_IDS_AND_TIMES = 2 + TRACE_ID_BYTES + 2 * (2 + ID_BYTES) + _TIMES.size
_times = _TIMES.pack
_double = Struct("<d").pack
_bytes = bytes.fromhex


class _Said(NamedTuple):
    """What a span says besides its ids and times, and the tag and length of the span that says it."""

    opening: bytes
    fields: bytes


class Envelope:
    """A resource, around the spans of attempts."""

    def __init__(self, resource: Mapping[str, Any]) -> None:
        attributes = b"".join(_attributes(_RESOURCE_ATTRIBUTE, resource))
        self._resource = _field(_RESOURCE, attributes)
        self._scope = _field(_SCOPE, _field(_SCOPE_NAME, SCOPE_NAME.encode()))

    def request(self, attempts: Sequence[bytes]) -> bytes:
        """The ExportTraceServiceRequest that has the spans of these attempts."""
        spans = len(self._scope) + sum(map(len, attempts))
        opening = self._resource + _SCOPE_SPANS + _varint(spans) + self._scope
        everything = len(self._resource) + len(_SCOPE_SPANS) + len(_varint(spans)) + spans
        return b"".join((_RESOURCE_SPANS, _varint(everything), opening, *attempts))


def attempt_bytes(cycle: EndedCycle) -> bytes:
    """The spans of the attempt: one field of ScopeSpans behind the other."""
    record, shape = cycle.record, TraceShape.of(cycle.record)
    root_id, offset = record.root_span_id, record.wall_offset_ns
    trace = _field(_TRACE_ID, record.trace_id) + _SPAN_ID_OPENING
    parts = [
        _root(cycle, shape),
        _QUEUE_WAIT.opening,
        trace,
        shape.queue_wait_id,
        _PARENT_OPENING,
        root_id,
        _times(_START_TIME, shape.began, _END_TIME, shape.dequeued),
        _QUEUE_WAIT.fields,
    ]
    intervals = record.intervals
    # The parent -1 is the root.
    parent_ids = [*shape.ids, root_id]
    columns = zip(intervals, shape.ids, shape.parents, shape.starts, shape.ends, strict=True)
    for index, (interval, span_id, parent, start, end) in enumerate(columns):
        why_broken = cycle.message if index in shape.broken else None
        opening, fields = _said_of(intervals, interval, why_broken)
        parts += (
            opening,
            trace,
            span_id,
            _PARENT_OPENING,
            parent_ids[parent],
            _times(_START_TIME, start + offset, _END_TIME, end + offset),
            fields,
        )
    return b"".join(parts)


def _root(cycle: EndedCycle, shape: TraceShape) -> bytes:
    record = cycle.record
    said = _fields(ROOT_NAME, INTERNAL, root_attributes(cycle), root_status(cycle), links_of(record))
    ids = _field(_TRACE_ID, record.trace_id) + _SPAN_ID_OPENING + record.root_span_id
    times = _times(_START_TIME, shape.began, _END_TIME, shape.ended)
    return _field(_SPAN, ids + times + said)


def _said_of(intervals: Sequence[Interval], interval: Interval, why_broken: str | None) -> _Said:
    """What the span of an interval says; kept unless it has words of its own."""
    status, point = interval.status, extension_point(intervals, interval)
    if why_broken is not None:
        return _said(interval, point, why_broken)
    if status is None or status is SUCCESS:
        code = 0
    elif status.own_reasons or status.error is not None:
        return _said(interval, point)
    else:
        code = int(status.code)
    if (attributes := interval.attributes) or interval.span_id:
        # Settings and counts, never a pod's own words: few, and short.
        is_call = bool(interval.span_id)
        return _described(interval.name, point, code, is_call, *attributes, *attributes.values())
    return _plain(interval.name, point, code)


@lru_cache(maxsize=KEPT_PARTS)
def _plain(name: str, point: str, code: int) -> _Said:
    return _said(Interval(name, 0, 1, status=Status(Code(code))), point)


@lru_cache(maxsize=KEPT_PARTS, typed=True)
def _described(name: str, point: str, code: int, is_call: bool, *attributes: Any) -> _Said:
    """`attributes` are the keys and then their values: 1, 1.0 and True are not the same in OTLP."""
    half = len(attributes) // 2
    known = dict(zip(attributes[:half], attributes[half:], strict=True))
    span_id = bytes(ID_BYTES) if is_call else b""
    return _said(Interval(name, 0, 1, -1, known, span_id, Status(Code(code))), point)


def _said(interval: Interval, point: str, why_broken: str | None = None) -> _Said:
    kind = CLIENT if interval.span_id else INTERNAL
    fields = _fields(interval.name, kind, attributes_of(interval, point), status_of(interval, why_broken))
    return _Said(_SPAN + _varint(_IDS_AND_TIMES + len(fields)), fields)


def _fields(
    name: str, kind: int, attributes: Mapping[str, Any], status: SpanStatus, links: Sequence[SpanLink] = ()
) -> bytes:
    """All fields of a span but its ids and times."""
    return b"".join(
        (
            _field(_NAME, name.encode()),
            _KIND + _varint(kind),
            *_attributes(_ATTRIBUTE, attributes),
            *[_field(_LINK, _link(link)) for link in links],
            _status(status),
            _SPAN_FLAGS + _IS_REMOTE_IS_KNOWN,
        )
    )


def _link(link: SpanLink) -> bytes:
    ids = _field(_TRACE_ID, _bytes(link.trace_id)) + _field(_SPAN_ID, _bytes(link.span_id))
    return b"".join((ids, *_attributes(_LINK_ATTRIBUTE, link.attributes), _LINK_FLAGS + _IS_REMOTE_IS_KNOWN))


def _status(status: SpanStatus) -> bytes:
    if not status.code:
        return b""
    message = _field(_STATUS_MESSAGE, status.message.encode())
    return _field(_STATUS, message + _STATUS_CODE + _varint(status.code))


def _attributes(tag: bytes, attributes: Mapping[str, Any]) -> Iterable[bytes]:
    """A field for each; those with short values are kept."""
    for key, value in attributes.items():
        kind = type(value)
        short = kind is int or (kind is str and len(value) <= MAX_KEPT_CHARACTERS)
        yield _known_attribute(tag, key, value) if short else _attribute(tag, key, value)


def _attribute(tag: bytes, key: str, value: Any) -> bytes:
    return _field(tag, _field(_KEY, key.encode()) + _field(_VALUE, _value(value)))


_known_attribute = lru_cache(maxsize=KEPT_ATTRIBUTES)(_attribute)


def _value(value: Any) -> bytes:
    """An AnyValue; spans and resources have no others but lists of these."""
    kind = type(value)
    if kind is str:
        return _field(_STRING, value.encode())
    if kind is bool:
        return _BOOL + _varint(value)
    if kind is int:
        return _INT + _varint(_unsigned(value))
    if kind is float:
        return _DOUBLE + _double(value)
    return _field(_ARRAY, b"".join([_field(_ITEM, _value(each)) for each in value]))


def _unsigned(value: int) -> int:
    """An int64 in two's complement.

    Raises: ValueError where it has more bits than that.
    """
    if not -_INT64 <= value < _INT64:
        raise ValueError(f"int of more than 64 bits: {value}")
    return value % (2 * _INT64)


def _field(tag: bytes, data: bytes) -> bytes:
    return b"%b%b%b" % (tag, _varint(len(data)), data)


def _long_varint(number: int) -> bytes:
    made = bytearray()
    while number > _SEVEN_BITS:
        made.append(number & _SEVEN_BITS | _MORE)
        number >>= 7
    made.append(number)
    return bytes(made)


_SHORT = tuple(map(_long_varint, range(1 << 11)))


def _varint(number: int) -> bytes:
    return _SHORT[number] if number < len(_SHORT) else _long_varint(number)


_QUEUE_WAIT = _plain(QUEUE_WAIT_NAME, "", 0)
