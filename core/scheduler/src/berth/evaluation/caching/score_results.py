"""Runs Score plugins for one class of pods, on all rows or on those that changed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from berth.evaluation.caching.answer_columns import SCORES, AnswerColumns
from berth.evaluation.caching.dirty_rows import DirtyRows, rows_of
from berth.evaluation.caching.remote_plugin import RemotePlugin, ask_side_by_side, unanswered, zero
from berth.evaluation.caching.total_scores import TotalScores
from berth.evaluation.points.scoring import Weighed, ask_scores, check_range, check_score, score_error
from berth.framework.attempts.attempt import Attempt
from berth.framework.interface import Depends, RowForm, ScorePlugin, Scores
from berth.snapshot.columns.growing import NO_ROWS, Ints, Mask, Rows
from berth.snapshot.row_view import RowView

ScoreOf = Callable[[int], int]


class _ScoresByRow(NamedTuple):
    """Functions of one row: with weights, of plugins whose raw scores are final, and of the others."""

    final: list[tuple[int, ScoreOf]]
    raw: list[ScoreOf]
    columns: Sequence[AnswerColumns]
    """Those that scores are read from: a row that is dirty there has to be asked about first."""


class ScoreResults:
    """Runs these plugins and keeps the results in `total_scores`.

    Of the plugins whose scores change with the pods on a node, `_final_plugins` are those that do not
    normalize; `total_scores.pod_dependent` has the others.
    """

    __slots__ = (
        "_by_row",
        "_final_plugins",
        "_formless",
        "_forms",
        "_names",
        "_plugins",
        "_remote",
        "_row_plugins",
        "total_scores",
    )

    def __init__(self, plugins: Sequence[Weighed], total_scores: TotalScores) -> None:
        self._plugins = plugins
        self.total_scores = total_scores
        self._final_plugins: list[Weighed] = []
        self._row_plugins: Sequence[Weighed] = ()
        self._remote: Sequence[RemotePlugin] = ()
        self._forms: dict[str, RowForm[Scores]] = {}
        self._formless: Sequence[Weighed] = ()
        self._by_row: _ScoresByRow | None = None
        self._names: tuple[str, ...] | None = None

    async def begin(self, attempt: Attempt, feasible: Mask, point: int) -> None:
        """Score all rows. Shapes: feasible bool (n,). Raises: PluginError."""
        state, total_scores = attempt.state, self.total_scores

        def take(plugin: ScorePlugin, weight: int, raw: Scores) -> None:
            if (
                total_scores.add(plugin, weight, raw, state, feasible)
                and plugin.depends is not Depends.OBJECT
            ):
                self._final_plugins.append((plugin, weight))

        await ask_scores(self._plugins, attempt, point, take)
        self._row_plugins = [
            *self._final_plugins,
            *((part.plugin, part.weight) for part in total_scores.pod_dependent),
        ]
        self._remote = [plugin for plugin, _ in self._row_plugins if isinstance(plugin, RemotePlugin)]

    def ask(self, attempt: Attempt, dirty: DirtyRows, fits: Mask, point: int) -> Awaitable[None] | None:
        """Score the dirty rows on which the pod fits: now (None), or once the result is awaited.

        Shapes: fits bool (n,). Raises: PluginError.
        """
        if dirty.every:
            return self._ask_every(attempt, fits, point)
        if not dirty.few and dirty.many is None:
            return None
        forms = None if dirty.many is not None else self._forms_by_row(attempt)
        if forms is None:
            return self._ask_some(attempt, dirty.rows(), fits, point)
        unasked = self._ask_each(attempt, dirty.few, fits, forms)
        return self._ask_remote_first(attempt, unasked, fits, point) if unasked else None

    async def _ask_every(self, attempt: Attempt, fits: Mask, point: int) -> None:
        """Run the plugins again on all rows."""
        found = await self._asked(self._row_plugins, attempt, point)
        object_scores = self.total_scores.object_scores
        sums = np.zeros(fits.size, dtype=np.int64) if object_scores is None else object_scores.copy()
        self._add_final(sums, found, fits)
        self.total_scores.set_all_rows(sums, self._raws(found), fits)

    def _forms_by_row(self, attempt: Attempt) -> _ScoresByRow | None:
        """A function of one row for each of these plugins; None where one has none."""
        if self._names is not attempt.nodes.resource_names:
            state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
            row_plugins = self._row_plugins
            self._forms = {plugin.name: plugin.score_by_row(state, pod, nodes) for plugin, _ in row_plugins}
            self._formless = [
                weighed
                for weighed in row_plugins
                if self._forms[weighed[0].name].some is None and not isinstance(weighed[0], RemotePlugin)
            ]
            self._by_row = self._divided([self._forms[plugin.name].one for plugin, _ in row_plugins])
            self._names = nodes.resource_names
        if not self._remote or self._by_row is None:
            return self._by_row
        columns = {plugin.name: plugin.read(attempt, SCORES) for plugin in self._remote}
        forms = [
            self._read_from(columns[plugin.name], plugin, final=i < len(self._final_plugins))
            if plugin.name in columns
            else self._forms[plugin.name].one
            for i, (plugin, _) in enumerate(self._row_plugins)
        ]
        return self._divided(forms, [each for each in columns.values() if each is not None])

    def _divided(
        self, forms: Sequence[ScoreOf | None], columns: Sequence[AnswerColumns] = ()
    ) -> _ScoresByRow | None:
        there = [form for form in forms if form is not None]
        if len(there) < len(forms):
            return None
        weights = [weight for _, weight in self._final_plugins]
        return _ScoresByRow(list(zip(weights, there, strict=False)), there[len(weights) :], columns)

    @staticmethod
    def _read_from(columns: AnswerColumns | None, plugin: ScorePlugin, *, final: bool) -> ScoreOf:
        """The plugin's raw score of a row, which is checked where it is final."""
        if columns is None:
            return zero
        if not final:
            return columns.raw_score
        raw_score = columns.raw_score

        def checked(row: int) -> int:
            score = raw_score(row)
            check_score(plugin.name, score)
            return score

        return checked

    def _ask_each(
        self, attempt: Attempt, rows: Iterable[int], fits: Mask, forms: _ScoresByRow, *, asked: bool = False
    ) -> set[int]:
        """Score a few rows, one at a time; returns those that a remote plugin has to answer for first."""
        total_scores, object_scores = self.total_scores, self.total_scores.object_scores
        columns = () if asked else forms.columns
        unasked: set[int] = set()
        for row in rows:
            if not fits.item(row):
                total_scores.drop_row(row)
                continue
            if columns and any(each.is_dirty(SCORES, row) for each in columns):
                unasked.add(row)
                continue
            unnormalized = 0 if object_scores is None else object_scores.item(row)
            for weight, score_of in forms.final:
                unnormalized += weight * score_of(row)
            raws = [score_of(row) for score_of in forms.raw]
            total_scores.set_row(row, unnormalized, raws, attempt.state, attempt.pod)
        if self._final_plugins:
            attempt.state.meter.worked(self._final_plugins[-1][0].name)
        return unasked

    async def _ask_remote_first(self, attempt: Attempt, rows: set[int], fits: Mask, point: int) -> None:
        await ask_side_by_side(self._remote, attempt, SCORES, rows_of(rows), point=point, error=score_error)
        forms = self._forms_by_row(attempt)
        assert forms is not None, "there were forms before"
        self._ask_each(attempt, rows, fits, forms, asked=True)

    def _ask_some(self, attempt: Attempt, rows: Rows, fits: Mask, point: int) -> Awaitable[None] | None:
        """Score some rows together. Shapes: rows intp (k,); fits bool (n,)."""
        self._forms_by_row(attempt)
        rows = self.total_scores.drop_infeasible(rows, fits)
        if not rows.size:
            return None
        unasked = unanswered(self._remote, attempt, SCORES, rows) if self._remote else NO_ROWS
        if unasked.size or self._formless:
            return self._ask_first(attempt, rows, unasked, point)
        self._ask_together(attempt, rows, {})
        return None

    async def _ask_first(self, attempt: Attempt, rows: Rows, unasked: Rows, point: int) -> None:
        """The same, after remote plugins have answered for those, and others for a table of the rows."""
        if unasked.size:
            await ask_side_by_side(self._remote, attempt, SCORES, unasked, point=point, error=score_error)
        tables: dict[str, Scores] = {}
        if self._formless:
            part = attempt.on(RowView(attempt.nodes, rows), attempt.state)
            tables = await self._asked(self._formless, part, point)
        self._ask_together(attempt, rows, tables)

    def _ask_together(self, attempt: Attempt, rows: Rows, tables: dict[str, Scores]) -> None:
        found = tables
        for plugin, _ in self._row_plugins:
            if scores_of := self._forms[plugin.name].some:
                found[plugin.name] = scores_of(rows)
            elif isinstance(plugin, RemotePlugin):
                found[plugin.name] = plugin.scores_of(attempt, rows)
        object_scores = self.total_scores.object_scores
        sums = np.zeros(rows.size, dtype=np.int64) if object_scores is None else object_scores.take(rows)
        self._add_final(sums, found)
        self.total_scores.set_rows(rows, sums, self._raws(found))
        if self._final_plugins:
            attempt.meter.worked(self._final_plugins[-1][0].name)

    async def _asked(self, plugins: Sequence[Weighed], part: Attempt, point: int) -> dict[str, Scores]:
        """The plugins' raw scores of a table, by name."""
        found: dict[str, Scores] = {}

        def take(plugin: ScorePlugin, _weight: int, raw: Scores) -> None:
            found[plugin.name] = raw

        await ask_scores(plugins, part, point, take)
        return found

    def _add_final(self, sums: Ints, found: dict[str, Scores], fits: Mask | None = None) -> None:
        """Add the weighted final scores; a sidecar's are checked where the pod fits (None: everywhere).

        Shapes: sums int64 (k,); fits bool (k,).
        """
        for plugin, weight in self._final_plugins:
            scores = found[plugin.name]
            if not plugin.in_process:
                check_range(plugin.name, scores, fits)
            sums += scores if weight == 1 else scores * weight

    def _raws(self, found: dict[str, Scores]) -> list[Scores]:
        """The raw scores that are not final, in the order of `total_scores.pod_dependent`."""
        return [found[part.plugin.name] for part in self.total_scores.pod_dependent]
