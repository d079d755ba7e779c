"""How long attempts took, read back from the traces that they left."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from berth.telemetry.traces.spans import QUEUE_WAIT_NAME, ROOT_NAME, Span

PERCENTILES = (50, 90, 99)
STAGES = (QUEUE_WAIT_NAME, "scheduling cycle", "binding cycle", ROOT_NAME)


class StageLatency(msgspec.Struct, frozen=True):
    """One stage's percentiles, in the order of PERCENTILES. Units: milliseconds."""

    stage: str
    count: int
    milliseconds: tuple[float, ...]


def latencies(spans: Iterable[Span]) -> list[StageLatency]:
    """The stages of attempts, and the sidecars' spans together, as far as the traces have them."""
    taken: dict[str, list[float]] = defaultdict(list)
    for span in spans:
        if span.name in STAGES:
            taken[span.name].append((span.end_time_unix_nano - span.start_time_unix_nano) / 1e6)
    return [
        StageLatency(stage, len(taken[stage]), _percentiles(taken[stage])) for stage in STAGES if taken[stage]
    ]


def not_taken(stages: Iterable[StageLatency], exported: int, exporters: int) -> int:
    """How many of the traces in the file have not reached a collector, of which there are so many.

    `exported` is what file and collectors have taken together.
    """
    in_file = next((stage.count for stage in stages if stage.stage == ROOT_NAME), 0)
    return max(0, in_file * (1 + exporters) - exported)


def _percentiles(values: Sequence[float]) -> tuple[float, ...]:
    ordered = sorted(values)
    return tuple(ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in PERCENTILES)
