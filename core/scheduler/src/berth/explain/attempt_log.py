"""The last attempts at each pod, for those who ask why a pod is where it is."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import NO_NODES_AVAILABLE, FitError
from berth.snapshot.bounded_cache import BoundedCache

MAX_PODS = 20_000
ATTEMPTS_PER_POD = 5
MAX_CHARACTERS = 64 * 2**20
"""Of all messages together; an ordinary one has two hundred."""


class AttemptSummary(NamedTuple):
    """One attempt in short. Units: wall-clock seconds since the epoch, durations in milliseconds."""

    attempt: int
    result: str
    node: str
    message: str
    trace_id: str
    """That of its trace; empty where none is exported."""
    started_at: float
    queued_milliseconds: float
    cycle_milliseconds: float
    total_milliseconds: float
    feasible_nodes: int
    evaluated_nodes: int
    score: int | None
    rejected_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Failures of plugins that their failure policies passed over."""
    not_evaluated: str = ""
    """What ended the attempt before any node was evaluated; empty where nodes were."""


class TriedPod(msgspec.Struct):
    """A pod that was tried, and its last attempts, oldest first."""

    key: str
    uid: str
    profile: str
    attempts: deque[AttemptSummary] = msgspec.field(default_factory=lambda: deque(maxlen=ATTEMPTS_PER_POD))


class AttemptLog:
    """Summaries by pod UID, the pods that were tried longest ago forgotten first."""

    def __init__(self, max_pods: int = MAX_PODS, max_characters: int = MAX_CHARACTERS) -> None:
        self._by_uid: BoundedCache[str, TriedPod] = BoundedCache(max_characters, max_pods)

    def on_record(self, record: CycleRecord) -> None:
        """Take note of a finished attempt."""
        pod = record.pod
        tried = self._by_uid.peek(pod.uid) or TriedPod(pod.key, pod.uid, record.profile)
        attempts = tried.attempts
        attempts.append(summary(record))
        self._by_uid.put(pod.uid, tried, sum(map(_characters, attempts)))

    def of(self, uid: str) -> list[AttemptSummary]:
        """The pod's last attempts, oldest first."""
        tried = self.tried(uid)
        return [] if tried is None else list(tried.attempts)

    def tried(self, uid: str) -> TriedPod | None:
        """The pod of that UID, if it was tried lately."""
        return self._by_uid.peek(uid)

    def latest(self) -> Iterator[TriedPod]:
        """The pods that were tried, the latest first."""
        return self._by_uid.newest()

    def named(self, key: str) -> TriedPod | None:
        """The pod of that `namespace/name` that was tried last. Cost: O(pods)."""
        return next((tried for tried in self.latest() if tried.key == key), None)


def _characters(attempt: AttemptSummary) -> int:
    return len(attempt.message) + sum(map(len, attempt.ignored))


def summary(record: CycleRecord) -> AttemptSummary:
    """The attempt in short."""
    cycle_ended = record.cycle_ended_ns or record.ended_ns
    return AttemptSummary(
        attempt=record.attempt,
        result=record.result,
        node=record.node_name,
        message=record.status.message if record.status else "",
        trace_id=record.trace_id.hex() if record.traced else "",
        started_at=(record.dequeued_ns + record.wall_offset_ns) / 1e9,
        queued_milliseconds=(record.dequeued_ns - record.enqueued_ns) / 1e6,
        cycle_milliseconds=(cycle_ended - record.dequeued_ns) / 1e6,
        total_milliseconds=(record.ended_ns - record.dequeued_ns) / 1e6,
        feasible_nodes=record.feasible_count,
        evaluated_nodes=record.evaluated_count,
        score=record.score,
        rejected_by=_rejected_by(record),
        ignored=record.ignored,
        not_evaluated="" if record.evaluated_count else _not_evaluated(record),
    )


def _rejected_by(record: CycleRecord) -> tuple[str, ...]:
    """The plugins that the attempt failed for."""
    status = record.status
    if status is None:
        return ()
    if isinstance(status.error, FitError):
        return tuple(sorted(status.error.diagnosis.unschedulable_plugins))
    return (status.plugin,) if status.plugin else ()


def _not_evaluated(record: CycleRecord) -> str:
    """What ended the attempt before its search came to any node."""
    status = record.status
    if status is None or status.ok:
        return ""
    if isinstance(status.error, FitError):
        diagnosis = status.error.diagnosis
        if diagnosis.absent.plugin:
            return f"PreFilter of {diagnosis.absent.plugin} refused"
        return f"PreFilter of {', '.join(sorted(diagnosis.unschedulable_plugins))} left no node"
    if not status.rejected:
        return f"{status.plugin} failed" if status.plugin else "the attempt broke off"
    if str(status.error) == NO_NODES_AVAILABLE:
        return "there are no nodes"
    return f"{status.plugin} refused" if status.plugin else "its group was refused"
