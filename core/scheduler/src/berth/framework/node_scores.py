"""Scores of feasible nodes, as they are shown to extenders, to decision observers and to `explain`."""

import msgspec

from berth.framework.interface import Scores
from berth.snapshot.columns.growing import Ints, Rows


class PluginScores(msgspec.Struct):
    """One plugin's part. Shapes: raw and final int64 (k,), the feasible nodes in table order."""

    plugin: str
    weight: int
    raw: Scores
    final: Scores


class NodeScores(msgspec.Struct):
    """What every feasible node scored.

    Shapes: rows intp (k,), row numbers; totals int64 (k,), the weighted sums.
    """

    rows: Rows
    totals: Ints
    parts: list[PluginScores] = msgspec.field(default_factory=list)
