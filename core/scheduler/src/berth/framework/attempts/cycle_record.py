"""The small record that every attempt fills; spans, metrics and `explain` are made from it afterwards.

Nothing here knows of exporters. Times are monotonic nanoseconds of one process; `wall_offset_ns` turns them
into wall-clock time.
"""

from typing import Any

import msgspec

from berth.framework.clock import nanoseconds
from berth.framework.status import Status
from berth.objects.pods.pod import Pod

MAX_IGNORED = 16


class Interval(msgspec.Struct):
    """One stretch of work: an extension point, or a plugin inside one (`parent` is its index).

    An attempt has some forty of them, so they are made at the least cost.

    `attributes` are small facts such as verdict counts; `span_id` is given where another process has to know
    the span before it is exported.
    """

    name: str
    started_ns: int
    ended_ns: int = 0
    parent: int = -1
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    span_id: bytes = b""
    status: Status | None = None


class CycleRecord(msgspec.Struct):
    """One attempt at one pod, from the queue to the end of the binding cycle.

    `trace_id` and `root_span_id` are given out when the attempt starts, because sidecars are sent them.
    """

    pod: Pod
    profile: str
    attempt: int
    trace_id: bytes
    root_span_id: bytes
    wall_offset_ns: int
    enqueued_ns: int
    dequeued_ns: int
    intervals: list[Interval] = msgspec.field(default_factory=list)
    node_count: int = 0
    feasible_count: int = 0
    evaluated_count: int = 0
    node_name: str = ""
    remembered: bool = False
    """Whether the node was found by what is remembered of an equal pod."""
    score: int | None = None
    status: Status | None = None
    result: str = ""
    """`scheduled`, `unschedulable` or `error`; empty until the attempt has ended."""
    cycle_ended_ns: int = 0
    ended_ns: int = 0
    first_enqueued_ns: int = 0
    paused_ns: int = 0
    """How long the pod stood still while others of its group were decided on: no part of its attempt."""
    rescued_from: frozenset[str] = frozenset()
    """Where the five-minute flush brought the pod back, and no event: the plugins that had rejected it."""
    after_flush: bool = False
    earlier: bytes = b""
    """Trace id and root span id of the pod's attempt before this one, if there was one."""
    traced: bool = False
    """Whether its trace is exported; known once it has ended."""
    phase: int = -1
    """The interval that extension points belong to: the scheduling cycle or the binding cycle."""
    ignored: tuple[str, ...] = ()
    """Failures of plugins that their failure policies passed over, each with its extension point."""

    def ignore(self, failure: str) -> None:
        """Take note of a failure that a policy passed over; of many the first MAX_IGNORED."""
        if len(self.ignored) < MAX_IGNORED and failure not in self.ignored:
            self.ignored = (*self.ignored, failure)

    def begin_phase(self, name: str) -> int:
        """Start a cycle; extension points that begin before the next phase belong to it."""
        self.phase = self.begin(name, -1)
        return self.phase

    def begin(self, name: str, parent: int | None = None) -> int:
        """Start a stretch of work; its index ends it, and is its children's parent."""
        intervals = self.intervals
        intervals.append(Interval(name, nanoseconds(), 0, self.phase if parent is None else parent))
        return len(intervals) - 1

    def end(self, index: int, status: Status | None = None, **attributes: Any) -> None:
        """End a stretch of work."""
        interval = self.intervals[index]
        interval.ended_ns = nanoseconds()
        interval.status = status
        if attributes:
            interval.attributes.update(attributes)
