"""Scores of feasible nodes, as they are shown to extenders, to decision observers and to `explain`."""

from dataclasses import dataclass, field

from berth.framework.interface import Scores
from berth.snapshot.columns.growing import Ints, Rows


@dataclass(slots=True)
class PluginScores:
    """One plugin's part. Shapes: raw and final int64 (k,), the feasible nodes in table order."""

    plugin: str
    weight: int
    raw: Scores
    final: Scores


@dataclass(slots=True)
class NodeScores:
    """What every feasible node scored.

    Shapes: rows intp (k,), row numbers; totals int64 (k,), the weighted sums.
    """

    rows: Rows
    totals: Ints
    parts: list[PluginScores] = field(default_factory=list)
