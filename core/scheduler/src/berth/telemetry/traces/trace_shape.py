"""Where each interval of a finished attempt stands in its trace: under which span, until when, by which id.

Spans are made from it (spans.py), and OTLP's bytes without them (otlp_encoder.py).
"""

from collections.abc import Sequence
from typing import NamedTuple

from berth.framework.attempts.cycle_record import CycleRecord, Interval

ID_BYTES = 8
_IDS = 1 << 64


class TraceShape(NamedTuple):
    """The trace of a record; its lists have an item for each interval.

    Units: nanoseconds since the epoch for `began`, `dequeued` and `ended`, of the record's clock for `starts`
    and `ends`. `broken` are the intervals that a failure cut short, and the points within which it did.
    """

    began: int
    dequeued: int
    ended: int
    queue_wait_id: bytes
    ids: list[bytes]
    parents: list[int]
    starts: list[int]
    ends: list[int]
    broken: frozenset[int]

    @classmethod
    def of(cls, record: CycleRecord) -> "TraceShape":
        """Every child lies within its parent, the root included."""
        intervals, offset = record.intervals, record.wall_offset_ns
        parents = parents_of(intervals)
        ends = _ends(record, parents)
        queue_wait_id, *ids = _span_ids(record.root_span_id, 1 + len(intervals))
        for index, interval in enumerate(intervals):
            if interval.span_id:
                ids[index] = interval.span_id
        return cls(
            min(record.enqueued_ns, record.dequeued_ns) + offset,
            record.dequeued_ns + offset,
            max(record.ended_ns, record.dequeued_ns, *ends) + offset,
            queue_wait_id,
            ids,
            parents,
            _starts(intervals, parents),
            ends,
            broken(intervals),
        )


def parents_of(intervals: Sequence[Interval]) -> list[int]:
    """The index of the interval that each one is part of, -1 for the root.

    Calls of sidecars are recorded beside the extension points: the plugin is asked before its turn
    comes. Its interval is the parent, which then begins with the call; or the point, where it had no turn.
    """
    parents = [interval.parent for interval in intervals]
    for index, interval in enumerate(intervals):
        if interval.span_id and (interval.parent < 0 or parents[interval.parent] < 0):
            parents[index] = _caller(intervals, index)
    return parents


def _caller(intervals: Sequence[Interval], index: int) -> int:
    """The plugin that was called, within the innermost extension point that was under way."""
    call = intervals[index]
    plugin = call.name.partition(" ")[0]
    for at in range(index - 1, -1, -1):
        around = intervals[at]
        under_way = around.started_ns <= call.started_ns <= (around.ended_ns or call.started_ns)
        if not under_way or around.span_id:
            continue
        if around.name == plugin:
            return at
        if around.parent >= 0 and intervals[around.parent].parent < 0:
            return _turn(intervals, index, at)
    return call.parent


def _turn(intervals: Sequence[Interval], index: int, point: int) -> int:
    """The first turn of the called plugin in that point after the call was made; the point without one."""
    plugin = intervals[index].name.partition(" ")[0]
    for at in range(index + 1, len(intervals)):
        if intervals[at].parent == point and intervals[at].name == plugin and not intervals[at].span_id:
            return at
    return point


def broken(intervals: Sequence[Interval]) -> frozenset[int]:
    """The intervals that an exception cut short, which have no end, and those around them."""
    open_ended = {index for index, interval in enumerate(intervals) if not interval.ended_ns}
    return frozenset(open_ended | {intervals[index].parent for index in open_ended} - {-1})


def _starts(intervals: Sequence[Interval], parents: Sequence[int]) -> list[int]:
    """When each interval began: a plugin's with the first call of it."""
    starts = [interval.started_ns for interval in intervals]
    for index, interval in enumerate(intervals):
        if interval.span_id and (around := parents[index]) >= 0:
            starts[around] = min(starts[around], interval.started_ns)
    return starts


def _ends(record: CycleRecord, parents: Sequence[int]) -> list[int]:
    """When each interval ended, stretched over its children.

    A stretch of work that an exception cut short ended, as far as is known, with the one around it.
    """
    ends: list[int] = []
    for interval in record.intervals:
        started, end = interval.started_ns, interval.ended_ns
        if end < started or not end:
            end = max(started, end or (ends[interval.parent] if interval.parent >= 0 else record.ended_ns))
        ends.append(end)
    for end, around in zip(list(ends), parents, strict=True):
        while around >= 0 and ends[around] < end:
            ends[around] = end
            around = parents[around]  # noqa: PLW2901 - upwards
    return ends


def _span_ids(root: bytes, count: int) -> list[bytes]:
    """Span ids that follow upon the root's: distinct, and the same at every export."""
    first = int.from_bytes(root, "big") + 1
    return [(each % _IDS).to_bytes(ID_BYTES, "big") for each in range(first, first + count)]
