"""Which cycles become traces: failed and slow ones always, the others by a ratio of their trace ids.

The decision depends on the trace id alone, so everybody who knows the id comes to the same one, and a sidecar
can be told of it before the cycle has ended.
"""

import os
from dataclasses import dataclass

from berth.framework.cycle_record import CycleRecord
from berth.telemetry.errors import SettingError

SLOW_SECONDS = 0.1

_ALL = 1 << 64


@dataclass(frozen=True, slots=True)
class Sampling:
    """A ratio of all cycles, and beside it those that went wrong or took long.

    Units: `bound`, of 2**64 trace ids, how many are sampled; `slow_ns`, of the scheduling cycle alone. With
    `tail` off not even failed and slow cycles are kept.
    """

    bound: int = _ALL
    slow_ns: int = int(SLOW_SECONDS * 1e9)
    tail: bool = True

    @classmethod
    def from_environment(cls) -> "Sampling":
        """What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG ask for; every cycle if they say nothing.

        A cycle's span has no parent, so the `parentbased_` samplers mean what they mean for roots.

        Raises: SettingError on an unknown sampler or a ratio that is not in 0 to 1.
        """
        name = os.environ.get("OTEL_TRACES_SAMPLER", "").strip().lower() or "parentbased_always_on"
        match name.removeprefix("parentbased_"):
            case "always_on":
                return cls()
            case "always_off":
                return cls(0, tail=False)
            case "traceidratio":
                ratio = _ratio(os.environ.get("OTEL_TRACES_SAMPLER_ARG", "").strip() or "1.0")
                return cls(round(ratio * _ALL))
        raise SettingError(f"OTEL_TRACES_SAMPLER: unknown sampler {name!r}")

    def sampled(self, trace_id: bytes) -> bool:
        """Whether the trace is among those of the ratio: OpenTelemetry's rule on the id's last 64 bits."""
        return int.from_bytes(trace_id[-8:], "big") < self.bound

    def keeps(self, record: CycleRecord) -> bool:
        """Whether the finished cycle is exported."""
        return self.sampled(record.trace_id) or (self.tail and self._stands_out(record))

    def _stands_out(self, record: CycleRecord) -> bool:
        ended = record.cycle_ended_ns or record.ended_ns
        return record.result != "scheduled" or ended - record.dequeued_ns >= self.slow_ns


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise SettingError(f"OTEL_TRACES_SAMPLER_ARG: {text!r} is not a ratio from 0 to 1")
    return ratio
