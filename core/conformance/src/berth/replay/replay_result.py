"""What came of a replay: what was compared, what differs, how long answers took."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from berth_plugin_proto import recording_pb2

MAX_CHANGES = 200_000
"""How many changes are kept in all: another score for each node of a large cluster is one in each call."""


class AnswerChange(msgspec.Struct, frozen=True):
    """One thing that an answer says otherwise: `kind` is what of (node, score, status, ...), `name` whose."""

    kind: str
    name: str
    was: str
    now: str


class CallDifference(msgspec.Struct, frozen=True):
    """A call that is answered otherwise than it was; `more` changes of it are counted and not kept."""

    call: str
    pod: str
    attempt: int
    generation: int
    changes: tuple[AnswerChange, ...]
    more: int = 0


class AnswerLatency(NamedTuple):
    """How long answers took, in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "AnswerLatency":
        """That of these calls, of which there is at least one."""
        p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
        return cls(round(float(p50), 3), round(float(p99), 3))


@dataclass(slots=True)
class Timing:
    """Seconds that the calls of one kind took, when they were recorded and now."""

    recorded: list[float] = field(default_factory=list)
    now: list[float] = field(default_factory=list)


@dataclass(slots=True)
class ReplayResult:
    """What came of a replay. `left_out` counts calls that were not compared, by why."""

    header: recording_pb2.RecordingHeader
    address: str
    recorded_version: str = ""
    version: str = ""
    compared: int = 0
    differences: list[CallDifference] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    timings: dict[str, Timing] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    _kept: int = 0

    def differ(
        self, call: str, pod: str, attempt: int, generation: int, found: Sequence[AnswerChange]
    ) -> None:
        """Take note of a call that is answered otherwise in these things, of which there is at least one."""
        room = max(1, MAX_CHANGES - self._kept)
        kept = tuple(found[:room])
        self._kept += len(kept)
        difference = CallDifference(call, pod, attempt, generation, kept, len(found) - len(kept))
        self.differences.append(difference)

    @property
    def same(self) -> int:
        """How many calls have the same answer."""
        return self.compared - sum(each.call != "Handshake" for each in self.differences)

    def latencies(self) -> dict[str, tuple[int, AnswerLatency, AnswerLatency]]:
        """By call: how many, how long they took when they were recorded, and now."""
        return {
            name: (len(timing.now), AnswerLatency.of(timing.recorded), AnswerLatency.of(timing.now))
            for name, timing in sorted(self.timings.items())
        }


def as_json(outcome: ReplayResult) -> str:
    """The report for machines."""
    document: dict[str, Any] = {
        "plugin": outcome.header.plugin,
        "address": outcome.address,
        "recorded": {
            "version": outcome.recorded_version,
            "host": outcome.header.host_version,
            "began": outcome.header.began.ToJsonString(),
        },
        "version": outcome.version,
        "counts": {
            "compared": outcome.compared,
            "same": outcome.same,
            "different": len(outcome.differences),
            "leftOut": dict(outcome.left_out),
        },
        "differences": [msgspec.to_builtins(each) for each in outcome.differences],
        "milliseconds": {
            name: {"calls": count, "recorded": was._asdict(), "now": now._asdict()}
            for name, (count, was, now) in outcome.latencies().items()
        },
        "warnings": outcome.warnings,
    }
    return json.dumps(document, indent=2)
