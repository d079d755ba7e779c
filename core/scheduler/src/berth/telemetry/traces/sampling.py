"""Which attempts become traces: a ratio of all by their trace ids, and beside it some failed and slow ones.

The ratio's decision depends on the trace id alone, so everybody who knows the id comes to the same one, and a
plugin can be sent it before the attempt has ended. Failed and slow attempts are known as such at their
end: of those that the ratio leaves out, at most so many are kept in any minute, each kind by a count of its
own, so that a backlog of pods that fit nowhere neither floods a collector nor hides what is slow.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord
from berth.telemetry.errors import SettingError

FAILED_PER_MINUTE = "BERTH_TRACES_FAILED_PER_MINUTE"
SLOW_PER_MINUTE = "BERTH_TRACES_SLOW_PER_MINUTE"
SLOW_SECONDS = "BERTH_TRACES_SLOW_SECONDS"

KEPT_PER_MINUTE = 60
MAX_PER_MINUTE = 6000
DEFAULT_SLOW_SECONDS = 0.1
MAX_SLOW_SECONDS = 3600.0

Number = TypeVar("Number", int, float)

_ALL = 1 << 64
_MINUTE_NS = 60_000_000_000


class Rate:
    """At most so many in any minute; `refused` counts the others. Units: nanoseconds of a monotonic clock."""

    __slots__ = ("_at", "_per_minute", "refused")

    def __init__(self, per_minute: int) -> None:
        self.refused = 0
        self._per_minute = per_minute
        self._at: deque[int] = deque(maxlen=per_minute)

    def admits(self, now_ns: int) -> bool:
        """Whether one more is within the rate; if so it counts."""
        if not self._per_minute:
            return False
        if len(self._at) == self._per_minute and now_ns - self._at[0] < _MINUTE_NS:
            self.refused += 1
            return False
        self._at.append(now_ns)
        return True


def _no_more() -> Rate:
    return Rate(0)


class Sampling(msgspec.Struct, frozen=True):
    """A ratio of all attempts, and beside it those that went wrong or took long, up to their rates.

    Units: `bound`, of 2**64 trace ids, how many are sampled; `slow_ns`, of the scheduling cycle alone.
    """

    bound: int = _ALL
    failed: Rate = msgspec.field(default_factory=_no_more)
    slow: Rate = msgspec.field(default_factory=_no_more)
    slow_ns: int = int(DEFAULT_SLOW_SECONDS * 1e9)

    @classmethod
    def from_environment(cls) -> "Sampling":
        """What OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG and BERTH_TRACES_* ask for.

        Every attempt if they say nothing. With a ratio of 0 nothing else is kept but what a BERTH_TRACES_*
        variable asks for. An attempt's span has no parent, so the `parentbased_` samplers mean what they mean
        for roots.

        Raises: SettingError on an unknown sampler, a ratio that is not in 0 to 1, or a rate that is none.
        """
        bound = _bound()
        per_minute = KEPT_PER_MINUTE if bound else 0
        return cls(
            bound,
            Rate(_setting(FAILED_PER_MINUTE, int, per_minute, MAX_PER_MINUTE)),
            Rate(_setting(SLOW_PER_MINUTE, int, per_minute, MAX_PER_MINUTE)),
            round(_setting(SLOW_SECONDS, float, DEFAULT_SLOW_SECONDS, MAX_SLOW_SECONDS) * 1e9),
        )

    def sampled(self, trace_id: bytes) -> bool:
        """Whether the trace is among those of the ratio: OpenTelemetry's rule on the id's last 64 bits."""
        return int.from_bytes(trace_id[-8:], "big") < self.bound

    def keeps(self, record: CycleRecord) -> bool:
        """Whether the finished attempt is exported; a failed one counts as that, however long it took."""
        if self.sampled(record.trace_id):
            return True
        if record.result != "scheduled":
            return self.failed.admits(record.ended_ns)
        ended = record.cycle_ended_ns or record.ended_ns
        return ended - record.dequeued_ns >= self.slow_ns and self.slow.admits(record.ended_ns)


def _bound() -> int:
    name = os.environ.get("OTEL_TRACES_SAMPLER", "").strip().lower() or "parentbased_always_on"
    match name.removeprefix("parentbased_"):
        case "always_on":
            return _ALL
        case "always_off":
            return 0
        case "traceidratio":
            ratio = _setting("OTEL_TRACES_SAMPLER_ARG", float, 1.0, 1.0)
            return round(ratio * _ALL)
    raise SettingError(f"OTEL_TRACES_SAMPLER: unknown sampler {name!r}")


def _setting(name: str, read: Callable[[str], Number], default: Number, most: Number) -> Number:
    """A variable's number from 0 to `most`; the default where it is not set."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        number = read(text)
    except ValueError:
        number = read("-1")
    if not 0 <= number <= most:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise SettingError(f"{name}: {text!r} is not {kind} from 0 to {most:g}")
    return number
