"""Runs Score plugins for one class of pods, on all rows or on those that changed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from berth.evaluation.plugin_calls import fetch_side_by_side
from berth.evaluation.scoring import Weighed, ask_scores, check_range, out_of_range, score_error
from berth.evaluation.total_scores import TotalScores
from berth.framework.attempt import Attempt
from berth.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    UNASKED,
    Depends,
    ScorePlugin,
    Scores,
)
from berth.snapshot.columns import NO_ROWS, Ints, Mask, Rows
from berth.snapshot.row_view import RowView

ScoreOn = Callable[[int], int]
ScoresOn = Callable[[Rows], Scores]
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class _Forms:
    """Scalar forms: of plugins whose raw scores are final, with weights (`plain`), and of the others."""

    plain: Sequence[tuple[int, ScoreOn]]
    raw: Sequence[ScoreOn]
    sidecars: bool
    """Whether some are sidecars, whose scores may have to be fetched first."""


@dataclass(frozen=True, slots=True)
class _FormsOfMany:
    """The same, of forms for several rows at once."""

    plain: Sequence[tuple[int, ScoresOn]]
    raw: Sequence[ScoresOn]
    sidecars: Sequence[int]
    """The sidecars among them, by their index in `plain + raw`."""


class ScoreResults:
    """Runs these plugins and keeps the results in `total_scores`."""

    __slots__ = ("_forms", "_forms_of_many", "_names", "_names_of_many", "_plain", "_plugins", "total_scores")

    def __init__(self, plugins: Sequence[Weighed], total_scores: TotalScores) -> None:
        self._plugins = plugins
        self.total_scores = total_scores
        self._plain: list[Weighed] = []
        self._forms: _Forms | None = None
        self._names: tuple[str, ...] | None = None
        self._forms_of_many: _FormsOfMany | None = None
        self._names_of_many: tuple[str, ...] | None = None

    async def ask_all(self, attempt: Attempt, feasible: Mask, point: int) -> None:
        """Score all rows. Shapes: feasible bool (n,). Raises: PluginError."""
        state, total_scores = attempt.state, self.total_scores

        def take(plugin: ScorePlugin, weight: int, raw: Scores) -> None:
            if (
                total_scores.add(plugin, weight, raw, state, feasible)
                and plugin.depends is not Depends.OBJECT
            ):
                self._plain.append((plugin, weight))

        await ask_scores(self._plugins, attempt, point, take)

    def ask_each(self, attempt: Attempt, rows: Iterable[int], fits: Mask) -> set[int] | None:
        """Score a few rows, one at a time; None where some plugin has no scalar form.

        Returns the rows whose scores have to be fetched from sidecars first (`fetch`).
        Raises: PluginError.
        """
        if self._names is not attempt.nodes.resource_names:
            self._names = attempt.nodes.resource_names
            self._forms = self._scalar_forms(attempt)
        forms, total_scores = self._forms, self.total_scores
        if forms is None:
            return None
        unasked: set[int] = set()
        for row in rows:
            if not fits.item(row):
                total_scores.take_out(row)
                continue
            final = [(weight, score_on(row)) for weight, score_on in forms.plain]
            raws = [score_on(row) for score_on in forms.raw]
            if forms.sidecars and (UNASKED in raws or any(score == UNASKED for _, score in final)):
                unasked.add(row)
                continue
            plain = 0 if total_scores.of_objects is None else total_scores.of_objects.item(row)
            for weight, score in final:
                plain += weight * score
            total_scores.put(row, plain, raws, attempt.state, attempt.pod)
        if self._plain:
            attempt.meter.worked(self._plain[-1][0].name)
        return unasked

    def ask_many(self, attempt: Attempt, rows: Rows, fits: Mask) -> Rows | None:
        """Score some rows at once; None, and no plugin is run, where one has no form for several rows.

        Returns the rows whose scores have to be fetched from sidecars first (`fetch`).
        Shapes: rows intp (k,); fits bool (n,); result intp (j,). Raises: PluginError.
        """
        if self._names_of_many is not attempt.nodes.resource_names:
            self._names_of_many = attempt.nodes.resource_names
            self._forms_of_many = self._made_for_many(attempt)
        forms, total_scores = self._forms_of_many, self.total_scores
        if forms is None:
            return None
        rows, unasked = total_scores.left_of(rows, fits), NO_ROWS
        finals = [scores_on(rows) for _, scores_on in forms.plain]
        raws = [scores_on(rows) for scores_on in forms.raw]
        if forms.sidecars:
            every = [*finals, *raws]
            there = np.logical_and.reduce([every[i] != UNASKED for i in forms.sidecars])
            if np.count_nonzero(there) < rows.size:
                unasked, rows = rows[~there], rows[there]
                finals, raws = [each[there] for each in finals], [each[there] for each in raws]
        plains: Ints = np.zeros(rows.size, dtype=np.int64)
        if total_scores.of_objects is not None:
            plains = total_scores.of_objects.take(rows)
        for (weight, _), scores in zip(forms.plain, finals, strict=True):
            plains += scores if weight == 1 else scores * weight
        total_scores.put_many(rows, plains, raws)
        if self._plain:
            attempt.meter.worked(self._plain[-1][0].name)
        return unasked

    @property
    def sidecars(self) -> Sequence[ScorePlugin]:
        """The sidecars among the plugins that are run on dirty rows."""
        own = [part.plugin for part in self.total_scores.own]
        return [plugin for plugin in (*(p for p, _ in self._plain), *own) if not plugin.in_process]

    async def fetch(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Fetch the sidecars' scores of these rows. Shapes: rows intp (k,).

        Raises: PluginError.
        """
        await fetch_side_by_side(
            self.sidecars, attempt, point, lambda plugin: _fetched(plugin, attempt, rows), score_error
        )

    def _scalar_forms(self, attempt: Attempt) -> _Forms | None:
        own = [part.plugin for part in self.total_scores.own]
        plain = [(weight, _form(plugin, attempt)) for plugin, weight in self._plain]
        raw = [plugin.score_row(attempt.state, attempt.pod, attempt.nodes) for plugin in own]
        if None in raw or any(form is None for _, form in plain):
            return None
        return _Forms(
            [(weight, form) for weight, form in plain if form],
            [form for form in raw if form],
            bool(self.sidecars),
        )

    def _made_for_many(self, attempt: Attempt) -> _FormsOfMany | None:
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        plain = [(weight, _form_of_many(plugin, attempt)) for plugin, weight in self._plain]
        raw = [part.plugin.score_rows(state, pod, nodes) for part in self.total_scores.own]
        if None in raw or any(form is None for _, form in plain):
            return None
        everyone = [*(p for p, _ in self._plain), *(part.plugin for part in self.total_scores.own)]
        return _FormsOfMany(
            [(weight, form) for weight, form in plain if form],
            [form for form in raw if form],
            [i for i, plugin in enumerate(everyone) if not plugin.in_process],
        )

    async def ask_some(self, attempt: Attempt, rows: Rows, fits: Mask, point: int) -> None:
        """Score some rows as a table of their own. Shapes: rows intp (k,). Raises: PluginError."""
        total_scores = self.total_scores
        rows = total_scores.left_of(rows, fits)
        if not rows.size:
            return
        part = attempt.on(RowView(attempt.nodes, rows), attempt.state)
        before = None if total_scores.of_objects is None else total_scores.of_objects[rows]
        plains, raws = await self._asked(part, before, np.ones(rows.size, dtype=bool), point)
        total_scores.put_many(rows, plains, raws)

    async def ask_all_again(self, attempt: Attempt, fits: Mask, point: int) -> None:
        """Run the plugins whose scores depend on pods on all rows. Shapes: fits bool (n,).

        Raises: PluginError.
        """
        plains, raws = await self._asked(attempt, self.total_scores.of_objects, fits, point)
        self.total_scores.put_all(plains, raws, fits)

    async def _asked(
        self, part: Attempt, of_objects: Ints | None, fits: Mask, point: int
    ) -> tuple[Ints, Sequence[Scores]]:
        """The weighted sums of final scores, `of_objects` included, and the raw scores that are not final.

        Shapes: of_objects int64 (k,); fits bool (k,).
        """
        plains: Ints = np.zeros(len(part.nodes), dtype=np.int64)
        if of_objects is not None:
            plains += of_objects
        raws: dict[str, Scores] = {}

        def take(plugin: ScorePlugin, weight: int, raw: Scores) -> None:
            nonlocal plains
            if plugin.name in own:
                raws[plugin.name] = raw
                return
            if not plugin.in_process:
                check_range(plugin.name, raw, fits)
            plains += raw if weight == 1 else raw * weight

        own = {each.plugin.name: (each.plugin, each.weight) for each in self.total_scores.own}
        await ask_scores([*self._plain, *own.values()], part, point, take)
        return plains, [raws[name] for name in own]


def _form(plugin: ScorePlugin, attempt: Attempt) -> ScoreOn | None:
    """The scalar form of final scores; a sidecar's are checked to be in range."""
    form = plugin.score_row(attempt.state, attempt.pod, attempt.nodes)
    return form if plugin.in_process else _checked(plugin.name, form, _check_one)


def _form_of_many(plugin: ScorePlugin, attempt: Attempt) -> ScoresOn | None:
    """The form for several rows at once of final scores; a sidecar's are checked to be in range."""
    form = plugin.score_rows(attempt.state, attempt.pod, attempt.nodes)
    return form if plugin.in_process else _checked(plugin.name, form, _check_many)


def _checked(
    name: str, form: Callable[[R], S] | None, check: Callable[[str, S], None]
) -> Callable[[R], S] | None:
    """The form with a check of each score that is there already (not UNASKED)."""
    if form is None:
        return None
    given = form

    def checked(rows: R) -> S:
        scores = given(rows)
        check(name, scores)
        return scores

    return checked


def _check_one(name: str, score: int) -> None:
    if score != UNASKED and not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
        raise out_of_range(name, score)


def _check_many(name: str, scores: Scores) -> None:
    check_range(name, scores, scores != UNASKED)


def _fetched(plugin: ScorePlugin, attempt: Attempt, rows: Rows) -> Awaitable[None]:
    return plugin.fetch_scores(attempt.state, attempt.pod, attempt.nodes, rows)
