"""Scores of one class of pods by row: the plugins' scores, the weighted totals, and the highest of these.

    raw scores that are final --weighted--> plain --+
                                                    +--> totals --> top scores
    raw scores --normalized over feasible rows------+

Normalized scores hold while the feasible rows and their raw scores do; of a plugin that normalizes by
extremes, while the lowest and the highest raw score do.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from berth.evaluation.caching.top_scores import LEFT_OUT, ROW_BYTES, TopScores
from berth.evaluation.points.scoring import check_range, final_scores
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Depends, NormalizedBy, NormalizeScorePlugin, ScorePlugin, Scores
from berth.framework.node_scores import NodeScores, PluginScores
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Ints, Mask, Rows, rows_where


@dataclass(slots=True)
class NormalizedScores:
    """One plugin's raw scores, whose final ones depend on all of them. Shapes: raw int64 (n,).

    The extremes are those over rows that fit, and how many rows have them.
    """

    plugin: ScorePlugin
    weight: int
    raw: Scores
    by_extremes: bool
    lowest: int = 0
    highest: int = 0
    at_lowest: int = 0
    at_highest: int = 0
    finals: dict[int, int] = field(default_factory=dict)

    @property
    def is_flat(self) -> bool:
        """Whether final scores are the same over any of the rows that fit, once these were surveyed."""
        return self.by_extremes and self.lowest == self.highest

    def survey(self, raw: Scores) -> None:
        """Take the extremes of the scores on rows that fit. Shapes: raw int64 (k,)."""
        self.finals.clear()
        self.lowest, self.highest = int(raw.min()), int(raw.max())
        self.at_lowest = int(np.count_nonzero(raw == self.lowest))
        self.at_highest = int(np.count_nonzero(raw == self.highest))

    def without(self, raw: int) -> bool:
        """Count a row out; whether the final scores of all others stay."""
        self.at_lowest -= raw == self.lowest
        self.at_highest -= raw == self.highest
        return self.by_extremes and self.at_lowest > 0 and self.at_highest > 0

    def beside(self, raw: int) -> bool:
        """Count a row in; whether the final scores of all others stay."""
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
    """The scores of all plugins but those that are asked about all nodes for every pod.

    Shapes: plain, totals int64 (n,), without meaning where the pod does not fit, but for totals, which are
        `LEFT_OUT` there.
    """

    def __init__(self, n: int, *, kept: bool, detailed: bool = False) -> None:
        self._n = n
        self._kept = kept
        self.plain: Ints | None = None
        self._plain_is_ours = False
        self.of_objects: Ints | None = None
        self._objects_apart = False
        self.normalised: list[NormalizedScores] = []
        self.own: list[NormalizedScores] = []
        """Those of them whose raw scores change with the pods on a node."""
        self._detailed: list[tuple[ScorePlugin, int, Scores]] | None = [] if detailed else None
        self.totals: Ints | None = None
        """None where they have to be added up anew."""
        self.top_scores = TopScores()

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes, without a column that classes share."""
        columns = 2 + len(self.own) + self._objects_apart
        return self._n * (8 * columns + ROW_BYTES)

    def add(self, plugin: ScorePlugin, weight: int, raw: Scores, state: CycleState, feasible: Mask) -> bool:
        """Take in a plugin's raw scores of all rows; whether they are final.

        A sidecar's scores have to be in range where the pod fits.

        Shapes: raw int64 (n,); feasible bool (n,). Raises: PluginError.
        """
        if self._detailed is not None:
            self._detailed.append((plugin, weight, raw))
        of_objects = plugin.depends is Depends.OBJECT
        normalized_by = NormalizedBy.NOTHING
        if isinstance(plugin, NormalizeScorePlugin):
            normalized_by = plugin.normalized_by(state)
        if normalized_by is not NormalizedBy.NOTHING:
            copied = raw.copy() if self._kept and not of_objects else raw
            part = NormalizedScores(plugin, weight, copied, normalized_by is NormalizedBy.EXTREMES)
            self.normalised.append(part)
            if not of_objects:
                self.own.append(part)
            return False
        if not plugin.in_process:
            check_range(plugin.name, raw, feasible)
        weighed = raw if weight == 1 else raw * weight
        stays = of_objects and self._kept
        if self.plain is None and weighed.shape == (self._n,) and weighed.dtype == np.int64:
            # What is not kept may stay the plugin's own array until something is added to it.
            shared = stays or weighed is raw
            self.plain = weighed.copy() if shared and self._kept else weighed
            self._plain_is_ours = self._kept or not shared
        elif self._plain_is_ours or self.plain is None:
            plains = self._plain()
            plains += weighed
        else:
            self.plain, self._plain_is_ours = _sum(self.plain, weighed), True
        if stays:
            # What a plugin of this process says of nodes' objects is one column for many classes.
            self._objects_apart = self.of_objects is not None or weighed is not raw or not plugin.in_process
            self.of_objects = weighed if self.of_objects is None else self.of_objects + weighed
        return True

    def add_up(self, state: CycleState, pod: Pod, fits: Mask) -> Ints:
        """The totals of all rows; kept until something changes that is not put right row by row.

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
            self.top_scores.clear()
        return self.totals

    def best(self) -> "tuple[int, array[int] | Rows]":
        """The highest total, and the rows that have it; the pod fits on some."""
        assert self.totals is not None, "add_up comes first"
        return self.top_scores.best(self.totals)

    def on(self, rows: Rows, state: CycleState, pod: Pod, *, whole: bool) -> NodeScores:
        """The scores of some rows that fit, or of the `whole` of them. Raises: PluginError."""
        scores = NodeScores(rows, np.zeros(0, dtype=np.int64))
        totals = self.totals if self._detailed is None else None
        whole = whole or (self._kept and all(part.is_flat for part in self.normalised))
        if totals is not None and whole:
            scores.totals = totals[rows]
        else:
            scores.totals = self._sums(rows, state, pod, survey=False, into=scores)
        return scores

    def _sums(
        self, rows: Rows, state: CycleState, pod: Pod, *, survey: bool, into: NodeScores | None = None
    ) -> Ints:
        everywhere = rows.size == self._n
        plain = self._plain() if everywhere else self._plain()[rows]
        sums: Ints | None = None
        finals: dict[str, Scores] = {}
        for part in self.normalised:
            raw = part.raw if everywhere else part.raw[rows]
            final = finals[part.plugin.name] = final_scores(part.plugin, state, pod, raw)
            weighed = final if part.weight == 1 else final * part.weight
            sums = _sum(plain, weighed) if sums is None else np.add(sums, weighed, out=sums)
            if survey and part.by_extremes and raw.size:
                part.survey(raw)
        if into is not None:
            for plugin, weight, every in self._detailed or ():
                raw = every[rows]
                into.parts.append(PluginScores(plugin.name, weight, raw, finals.get(plugin.name, raw)))
        return plain.copy() if sums is None else sums

    def put(self, row: int, plain: int, raws: Sequence[int], state: CycleState, pod: Pod) -> None:
        """Take in what plugins say of a row that fits: the sum of what is final, and raw scores that are not.

        Raw scores are those of `own`, in that order.
        """
        plains = self._plain()
        if raws:
            self._put_raws(row, raws)
        more = plain - plains.item(row)
        if more:
            plains[row] = plain
        if self.totals is None:
            return
        before = self.totals.item(row)
        total = before + more if before != LEFT_OUT else self._joining(row, plain, state, pod)
        if total is None:
            self.totals = None
        elif total != before:
            self.totals[row] = total
            self.top_scores.move(row, before, total)

    def _put_raws(self, row: int, raws: Sequence[int]) -> None:
        """Take in other raw scores of a row, which is out until it joins again with them."""
        if any(part.raw.item(row) != raw for part, raw in zip(self.own, raws, strict=True)):
            self.take_out(row)
            for part, raw in zip(self.own, raws, strict=True):
                part.raw[row] = raw

    def _joining(self, row: int, plain: int, state: CycleState, pod: Pod) -> int | None:
        """The total of a row that fits from now on; None where it changes the final scores of others."""
        total = plain
        for part in self.normalised:
            raw = part.raw.item(row)
            if not part.beside(raw):
                return None
            total += part.weight * part.final(raw, state, pod)
        return total

    def take_out(self, row: int) -> None:
        """Take note that the pod does not fit on that row."""
        if self.totals is None:
            return
        before = self.totals.item(row)
        if before == LEFT_OUT:
            return
        for part in self.normalised:
            if not part.without(part.raw.item(row)):
                self.totals = None
                return
        self.totals[row] = LEFT_OUT
        self.top_scores.move(row, before, LEFT_OUT)

    def left_of(self, rows: Rows, fits: Mask) -> Rows:
        """Those of the rows on which the pod fits; the others are taken out.

        Shapes: rows intp (k,); fits bool (n,); result intp (m,).
        """
        there = fits.take(rows)
        if np.count_nonzero(there) == rows.size:
            return rows
        if self.totals is not None:
            gone = rows[~there]
            for row in gone[self.totals.take(gone) != LEFT_OUT].tolist():
                self.take_out(row)
        return rows[there]

    def put_many(self, rows: Rows, plains: Ints, raws: Sequence[Scores]) -> None:
        """The same of many rows at once. Shapes: rows intp (k,); plains and each of raws int64 (k,)."""
        ours, totals = self._plain(), self.totals
        before = ours.take(rows)
        ours[rows] = plains
        same = True
        for part, raw in zip(self.own, raws, strict=True):
            same = same and np.array_equal(part.raw.take(rows), raw)
            part.raw[rows] = raw
        if totals is None:
            return
        there = totals.take(rows)
        if same and there.min(initial=0) != LEFT_OUT:
            there += np.subtract(plains, before, out=before)
            totals[rows] = there
            self.top_scores.clear()
        else:
            self.totals = None

    def put_all(self, plains: Ints, raws: Sequence[Scores], fits: Mask) -> None:
        """The same of all rows. Shapes: plains and each of raws int64 (n,); fits bool (n,)."""
        before, totals, self.plain = self._plain(), self.totals, plains
        same = totals is not None and bool(fits.all()) and totals.min() != LEFT_OUT
        for part, raw in zip(self.own, raws, strict=True):
            same = same and np.array_equal(part.raw, raw)
            part.raw = raw.copy()
        if totals is not None and same:
            totals += np.subtract(plains, before, out=before)
            self.top_scores.clear()
        else:
            self.totals = None

    def _plain(self) -> Ints:
        """The sums of final scores, to be written to where classes are kept."""
        if self.plain is None:
            self.plain, self._plain_is_ours = np.zeros(self._n, dtype=np.int64), True
        return self.plain


def _sum(scores: Ints, more: Scores) -> Ints:
    """A new column; what does not fit into it, in shape or type, is refused."""
    return np.add(scores, more, out=np.empty_like(scores))
