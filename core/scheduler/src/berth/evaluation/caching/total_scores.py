"""Scores of one class of pods by row: the plugins' scores, the weighted totals, and the highest of these.

    raw scores that are final --weighted--> unnormalized --+
                                                           +--> totals --> top scores
    raw scores --normalized over feasible rows-------------+

Normalized scores hold while the feasible rows and their raw scores do; of a plugin that normalizes by
extremes, while the lowest and the highest raw score do.
"""

from array import array
from collections.abc import Sequence

import msgspec
import numpy as np

from berth.evaluation.caching.top_scores import LEFT_OUT, ROW_BYTES, TopScores
from berth.evaluation.points.scoring import check_range, final_scores
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Depends, NormalizedBy, NormalizeScorePlugin, ScorePlugin, Scores
from berth.framework.node_scores import NodeScores, PluginScores
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Ints, Mask, Rows, rows_where


class NormalizedScores(msgspec.Struct):
    """One plugin's raw scores, to be normalized. Shapes: raw int64 (n,).

    `lowest` and `highest` are over the feasible rows; `at_lowest` and `at_highest` count their rows.
    """

    plugin: ScorePlugin
    weight: int
    raw: Scores
    by_extremes: bool
    lowest: int = 0
    highest: int = 0
    at_lowest: int = 0
    at_highest: int = 0
    finals: dict[int, int] = msgspec.field(default_factory=dict)

    @property
    def is_flat(self) -> bool:
        """Whether all feasible rows have the same raw score, so that any subset normalizes to the same."""
        return self.by_extremes and self.lowest == self.highest

    def survey(self, raw: Scores) -> None:
        """Recompute the extremes from the raw scores of all feasible rows. Shapes: raw int64 (k,)."""
        self.finals.clear()
        self.lowest, self.highest = int(raw.min()), int(raw.max())
        self.at_lowest = int(np.count_nonzero(raw == self.lowest))
        self.at_highest = int(np.count_nonzero(raw == self.highest))

    def remove_row(self, raw: int) -> bool:
        """Take a row's raw score out of the extremes; returns whether other rows' final scores stay valid."""
        self.at_lowest -= raw == self.lowest
        self.at_highest -= raw == self.highest
        return self.by_extremes and self.at_lowest > 0 and self.at_highest > 0

    def add_row(self, raw: int) -> bool:
        """Take a row's raw score into the extremes; returns whether other rows' final scores stay valid."""
        self.at_lowest += raw == self.lowest
        self.at_highest += raw == self.highest
        return self.by_extremes and self.lowest <= raw <= self.highest

    def final(self, raw: int, state: CycleState, pod: Pod) -> int:
        """The final score of a row between the extremes."""
        known = self.finals.get(raw)
        if known is None:
            three = np.array((self.lowest, self.highest, raw), dtype=np.int64)
            known = self.finals[raw] = int(final_scores(self.plugin, state, pod, three)[2])
        return known


class TotalScores:
    """The scores of all cacheable plugins for one class of pods, by row.

    Shapes: unnormalized, totals int64 (n,); on infeasible rows `totals` is `LEFT_OUT` and `unnormalized`
        undefined.
    """

    def __init__(self, n: int, *, kept: bool, detailed: bool = False) -> None:
        self._n = n
        self._kept = kept
        self.unnormalized: Ints | None = None
        self._owns_unnormalized = False
        self.object_scores: Ints | None = None
        self._owns_object_scores = False
        self.normalized: list[NormalizedScores] = []
        self.pod_dependent: list[NormalizedScores] = []
        """Those of `normalized` whose raw scores change with the pods on a node."""
        self._detailed: list[tuple[ScorePlugin, int, Scores]] | None = [] if detailed else None
        self.totals: Ints | None = None
        """None where `add_up` has to compute them again."""
        self.top_scores = TopScores()
        self._top_within = TopScores()
        """The same among the rows that were last asked about."""

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes, without a column that classes share."""
        columns = 2 + len(self.pod_dependent) + self._owns_object_scores
        return self._n * (8 * columns + 2 * ROW_BYTES + 1)

    def add(self, plugin: ScorePlugin, weight: int, raw: Scores, state: CycleState, feasible: Mask) -> bool:
        """Add a plugin's raw scores of all rows; returns whether they are final (not to be normalized).

        A sidecar's scores have to be in range where the pod fits.

        Shapes: raw int64 (n,); feasible bool (n,). Raises: PluginError.
        """
        if self._detailed is not None:
            self._detailed.append((plugin, weight, raw))
        object_only = plugin.depends is Depends.OBJECT
        normalized_by = NormalizedBy.NOTHING
        if isinstance(plugin, NormalizeScorePlugin):
            normalized_by = plugin.normalized_by(state)
        if normalized_by is not NormalizedBy.NOTHING:
            copied = raw.copy() if self._kept and not object_only else raw
            part = NormalizedScores(plugin, weight, copied, normalized_by is NormalizedBy.EXTREMES)
            self.normalized.append(part)
            if not object_only:
                self.pod_dependent.append(part)
            return False
        if not plugin.in_process:
            check_range(plugin.name, raw, feasible)
        weighed = raw if weight == 1 else raw * weight
        stays = object_only and self._kept
        if self.unnormalized is None and weighed.shape == (self._n,) and weighed.dtype == np.int64:
            # What is not kept may stay the plugin's own array until something is added to it.
            shared = stays or weighed is raw
            self.unnormalized = weighed.copy() if shared and self._kept else weighed
            self._owns_unnormalized = self._kept or not shared
        elif self._owns_unnormalized or self.unnormalized is None:
            sums = self._unnormalized_sums()
            sums += weighed
        else:
            self.unnormalized, self._owns_unnormalized = _sum(self.unnormalized, weighed), True
        if stays:
            # What a plugin of this process says of nodes' objects is one column for many classes.
            self._owns_object_scores = (
                self.object_scores is not None or weighed is not raw or not plugin.in_process
            )
            self.object_scores = weighed if self.object_scores is None else self.object_scores + weighed
        return True

    def add_up(self, state: CycleState, pod: Pod, fits: Mask) -> Ints:
        """The totals of all rows, cached until a change that `set_row` or `drop_row` can't apply to them.

        Shapes: fits bool (n,); result int64 (n,), not to be written to. Raises: PluginError.
        """
        if self.totals is None:
            rows = rows_where(fits)
            sums = self._sums(rows, state, pod, survey=self._kept)
            if rows.size == self._n:
                self.totals = sums
            else:
                self.totals = np.full(self._n, LEFT_OUT, dtype=np.int64)
                self.totals[rows] = sums
            self._clear_top_scores()
        return self.totals

    def best(self) -> "tuple[int, array[int] | Rows]":
        """The highest total, and the rows that have it. At least one row is feasible."""
        assert self.totals is not None, "add_up comes first"
        return self.top_scores.best(self.totals)

    def best_among(self, rows: Rows) -> "tuple[int, array[int] | Rows] | None":
        """The same among these feasible rows; None where their scores are not those of all feasible rows.

        Pods of a group are tried within one array of rows. Shapes: rows intp (k,), k > 0, ascending.
        """
        flat = self._kept and all(part.is_flat for part in self.normalized)
        if self.totals is None or self._detailed is not None or not flat:
            return None
        if self._top_within.among is not rows:
            self._top_within = TopScores(rows)
        return self._top_within.best(self.totals)

    def on(self, rows: Rows, state: CycleState, pod: Pod, *, whole: bool) -> NodeScores:
        """The scores of these feasible rows; `whole` says that they are all feasible ones.

        Raises: PluginError.
        """
        scores = NodeScores(rows, np.zeros(0, dtype=np.int64))
        totals = self.totals if self._detailed is None else None
        whole = whole or (self._kept and all(part.is_flat for part in self.normalized))
        if totals is not None and whole:
            scores.totals = totals[rows]
        else:
            scores.totals = self._sums(rows, state, pod, survey=False, into=scores)
        return scores

    def _sums(
        self, rows: Rows, state: CycleState, pod: Pod, *, survey: bool, into: NodeScores | None = None
    ) -> Ints:
        everywhere = rows.size == self._n
        unnormalized = self._unnormalized_sums() if everywhere else self._unnormalized_sums()[rows]
        sums: Ints | None = None
        finals: dict[str, Scores] = {}
        for part in self.normalized:
            raw = part.raw if everywhere else part.raw[rows]
            final = finals[part.plugin.name] = final_scores(part.plugin, state, pod, raw)
            weighed = final if part.weight == 1 else final * part.weight
            sums = _sum(unnormalized, weighed) if sums is None else np.add(sums, weighed, out=sums)
            if survey and part.by_extremes and raw.size:
                part.survey(raw)
        if into is not None:
            for plugin, weight, every in self._detailed or ():
                raw = every[rows]
                into.parts.append(PluginScores(plugin.name, weight, raw, finals.get(plugin.name, raw)))
        return unnormalized.copy() if sums is None else sums

    def set_row(self, row: int, unnormalized: int, raws: Sequence[int], state: CycleState, pod: Pod) -> None:
        """Set a feasible row's scores: the weighted sum of final ones, and the raw scores to be normalized.

        `raws` has those of `pod_dependent`, in that order.
        """
        sums = self._unnormalized_sums()
        if raws:
            self._set_raw_scores(row, raws)
        more = unnormalized - sums.item(row)
        if more:
            sums[row] = unnormalized
        if self.totals is None:
            return
        before = self.totals.item(row)
        total = before + more if before != LEFT_OUT else self._joining(row, unnormalized, state, pod)
        if total is None:
            self.totals = None
        elif total != before:
            self._set_total(row, before, total)

    def _set_total(self, row: int, before: int, total: int) -> None:
        assert self.totals is not None, "add_up comes first"
        self.totals[row] = total
        self.top_scores.move(row, before, total)
        self._top_within.move(row, before, total)

    def _clear_top_scores(self) -> None:
        """Drop both indices, because all totals changed."""
        self.top_scores.clear()
        self._top_within.clear()

    def _set_raw_scores(self, row: int, raws: Sequence[int]) -> None:
        """Replace a row's raw scores; where they differ, the row is dropped and has to join again."""
        if any(part.raw.item(row) != raw for part, raw in zip(self.pod_dependent, raws, strict=True)):
            self.drop_row(row)
            for part, raw in zip(self.pod_dependent, raws, strict=True):
                part.raw[row] = raw

    def _joining(self, row: int, unnormalized: int, state: CycleState, pod: Pod) -> int | None:
        """The total of a row that becomes feasible; None where it changes other rows' final scores."""
        total = unnormalized
        for part in self.normalized:
            raw = part.raw.item(row)
            if not part.add_row(raw):
                return None
            total += part.weight * part.final(raw, state, pod)
        return total

    def drop_row(self, row: int) -> None:
        """Mark the row as infeasible."""
        if self.totals is None:
            return
        before = self.totals.item(row)
        if before == LEFT_OUT:
            return
        for part in self.normalized:
            if not part.remove_row(part.raw.item(row)):
                self.totals = None
                return
        self._set_total(row, before, LEFT_OUT)

    def drop_infeasible(self, rows: Rows, fits: Mask) -> Rows:
        """Mark the infeasible ones of these rows; returns the feasible ones.

        Shapes: rows intp (k,); fits bool (n,); result intp (m,).
        """
        there = fits.take(rows)
        if np.count_nonzero(there) == rows.size:
            return rows
        if self.totals is not None:
            gone = rows[~there]
            for row in gone[self.totals.take(gone) != LEFT_OUT].tolist():
                self.drop_row(row)
        return rows[there]

    def set_rows(self, rows: Rows, sums: Ints, raws: Sequence[Scores]) -> None:
        """`set_row` for many rows at once. Shapes: rows intp (k,); sums and each of raws int64 (k,)."""
        ours, totals = self._unnormalized_sums(), self.totals
        before = ours.take(rows)
        ours[rows] = sums
        same = True
        for part, raw in zip(self.pod_dependent, raws, strict=True):
            same = same and np.array_equal(part.raw.take(rows), raw)
            part.raw[rows] = raw
        if totals is None:
            return
        there = totals.take(rows)
        if same and there.min(initial=0) != LEFT_OUT:
            there += np.subtract(sums, before, out=before)
            totals[rows] = there
            self._clear_top_scores()
        else:
            self.totals = None

    def set_all_rows(self, sums: Ints, raws: Sequence[Scores], fits: Mask) -> None:
        """`set_row` for all rows. Shapes: sums and each of raws int64 (n,); fits bool (n,)."""
        before, totals, self.unnormalized = self._unnormalized_sums(), self.totals, sums
        same = totals is not None and bool(fits.all()) and totals.min() != LEFT_OUT
        for part, raw in zip(self.pod_dependent, raws, strict=True):
            same = same and np.array_equal(part.raw, raw)
            part.raw = raw.copy()
        if totals is not None and same:
            totals += np.subtract(sums, before, out=before)
            self._clear_top_scores()
        else:
            self.totals = None

    def _unnormalized_sums(self) -> Ints:
        """The weighted sums of scores that are not normalized; zeros before the first plugin."""
        if self.unnormalized is None:
            self.unnormalized, self._owns_unnormalized = np.zeros(self._n, dtype=np.int64), True
        return self.unnormalized


def _sum(scores: Ints, more: Scores) -> Ints:
    """The sum as a new column. Raises: ValueError, TypeError where the operands' shape or type differs."""
    return np.add(scores, more, out=np.empty_like(scores))
