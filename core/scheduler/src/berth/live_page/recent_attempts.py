"""The counts, the timelines and the calls of plugins of recent attempts, in bounded memory.

Called by: the scheduling loop, with the record of each attempt; collecting.py reads.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord, Interval
from berth.objects.pods.pod import Pod
from berth.snapshot.bounded_cache import BoundedCache
from berth.telemetry.traces.trace_shape import TraceShape

KEPT_TIMELINES = 12
STEPS_OF_A_TIMELINE = 48
BETWEEN_TIMELINES_NS = 500_000_000
MAX_PLUGINS = 64
KEPT_CALLS = 256
MAX_NAME = 80
KEPT_FAILED = 200
SCHEDULED = "scheduled"


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A stretch of an attempt. Units: microseconds, from the moment the pod left the queue."""

    name: str
    depth: int
    started: int
    took: int


class AttemptTimeline(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One attempt as it went. Units: seconds since the epoch, microseconds."""

    pod: str
    profile: str
    result: str
    node: str
    trace_id: str
    at: float
    queued: int
    took: int
    steps: list[Step]
    left_out: int


class CallDurations(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How long the last calls of one plugin took. Units: microseconds."""

    plugin: str
    calls: int
    p50: int
    p99: int


class _Calls(msgspec.Struct):
    """How often a plugin was called, and how long the last calls took. Units: microseconds."""

    plugin: str
    count: int = 0
    durations: deque[int] = msgspec.field(default_factory=lambda: deque(maxlen=KEPT_CALLS))


class RecentAttempts:
    """Counts attempts, and keeps the timeline of one attempt each `BETWEEN_TIMELINES_NS` at most."""

    def __init__(self) -> None:
        self.attempts = 0
        self.scheduled = 0
        self._failed: BoundedCache[str, tuple[str, str]] = BoundedCache(max_entries=KEPT_FAILED)
        self._timelines: deque[AttemptTimeline] = deque(maxlen=KEPT_TIMELINES)
        self._latest_ns = -BETWEEN_TIMELINES_NS
        self._calls: BoundedCache[str, _Calls] = BoundedCache(max_entries=MAX_PLUGINS)

    def on_record(self, record: CycleRecord) -> None:
        """Take note of a finished attempt."""
        self.attempts += 1
        self.scheduled += record.result == SCHEDULED
        self._note(record.pod, failed=record.result != SCHEDULED)
        for interval in record.intervals:
            if interval.span_id:
                self._called(interval)
        if record.ended_ns - self._latest_ns >= BETWEEN_TIMELINES_NS:
            self._latest_ns = record.ended_ns
            self._timelines.append(timeline(record))

    def failed(self) -> Iterator[tuple[str, str]]:
        """Pods whose last attempt failed, by `namespace/name` and UID, the latest first."""
        return self._failed.newest()

    def timelines(self) -> list[AttemptTimeline]:
        """The attempts that were kept, the latest first."""
        return list(reversed(self._timelines))

    def calls(self) -> Iterator[CallDurations]:
        """The latencies of each plugin that was called."""
        for calls in self._calls.values():
            ordered = sorted(calls.durations)
            p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
            yield CallDurations(calls.plugin, calls.count, p50, p99)

    def _note(self, pod: Pod, *, failed: bool) -> None:
        if failed:
            self._failed.put(pod.key, (pod.key, pod.uid))
        else:
            self._failed.drop(pod.key)

    def _called(self, interval: Interval) -> None:
        """Count a call; its name is the plugin's and the method's."""
        plugin = interval.name.partition(" ")[0]
        calls = self._calls.get(plugin)
        if calls is None:
            # Plugins come and go: the one that was called longest ago makes room.
            self._calls.put(plugin, calls := _Calls(plugin))
        calls.count += 1
        calls.durations.append(max(0, interval.ended_ns - interval.started_ns) // 1000)


def timeline(record: CycleRecord) -> AttemptTimeline:
    """The attempt as it went, its first `STEPS_OF_A_TIMELINE` steps."""
    intervals, began, shape = record.intervals, record.dequeued_ns, TraceShape.of(record)
    steps = [
        Step(
            intervals[index].name[:MAX_NAME],
            depth,
            _micros(shape.starts[index] - began),
            _micros(shape.ends[index] - shape.starts[index]),
        )
        for index, depth in islice(_as_a_tree(shape.parents), STEPS_OF_A_TIMELINE)
    ]
    return AttemptTimeline(
        pod=record.pod.key,
        profile=record.profile,
        result=record.result,
        node=record.node_name,
        trace_id=record.trace_id.hex() if record.traced else "",
        at=round((began + record.wall_offset_ns) / 1e9, 3),
        queued=_micros(began - record.enqueued_ns),
        took=_micros(record.ended_ns - began),
        steps=steps,
        left_out=max(0, len(intervals) - len(steps)),
    )


def _as_a_tree(parents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each interval's index and depth, behind its parent."""
    children: dict[int, list[int]] = {}
    for index, parent in enumerate(parents):
        children.setdefault(parent, []).append(index)
    upcoming = [(index, 0) for index in reversed(children.get(-1, ()))]
    while upcoming:
        index, depth = upcoming.pop()
        yield index, depth
        upcoming += [(child, depth + 1) for child in reversed(children.get(index, ()))]


def _micros(nanoseconds: int) -> int:
    return max(0, nanoseconds) // 1000
