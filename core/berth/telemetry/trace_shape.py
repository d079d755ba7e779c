"""Where each interval of a finished attempt stands in its trace: under which span, until when, by which id.

Spans are made from it (spans.py), and OTLP's bytes without them (otlp_encoder.py).
"""

from collections.abc import Sequence
from typing import NamedTuple

from berth.framework.cycle_record import CycleRecord, Interval

ID_BYTES = 8
_IDS = 1 << 64


class TraceShape(NamedTuple):
    """The trace of a record; its lists have an item for each interval.

    Units: nanoseconds since the epoch for `began`, `dequeued` and `ended`, of the record's clock for `ends`.
    """

    began: int
    dequeued: int
    ended: int
    queue_wait_id: bytes
    ids: list[bytes]
    parents: list[int]
    ends: list[int]

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
            ends,
        )


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
    for interval, parent in zip(record.intervals, parents, strict=True):
        started, end = interval.started_ns, interval.ended_ns
        if end < started or not end:
            end = max(started, end or (ends[parent] if parent >= 0 else record.ended_ns))
        ends.append(end)
        around = parent
        while around >= 0 and ends[around] < end:
            ends[around] = end
            around = parents[around]
    return ends


def _span_ids(root: bytes, count: int) -> list[bytes]:
    """Span ids that follow upon the root's: distinct, and the same at every export."""
    first = int.from_bytes(root, "big") + 1
    return [(each % _IDS).to_bytes(ID_BYTES, "big") for each in range(first, first + count)]
