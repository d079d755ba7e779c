"""Scores of one class of pods: Score plugins asked about all rows, or about rows that changed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from berth.evaluation.asking import bring
from berth.evaluation.ranks import Ranks
from berth.evaluation.scoring import Weighed, ask_scores, check_range, out_of_range, score_error
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
    """The scalar forms of raw scores that are final, with their weights, and of those that are not."""

    plain: Sequence[tuple[int, ScoreOn]]
    raw: Sequence[ScoreOn]
    outside: bool
    """Whether some are of plugins in other processes, which may have to be asked first."""


@dataclass(frozen=True, slots=True)
class _FormsOfMany:
    """The same forms, for some rows at once."""

    plain: Sequence[tuple[int, ScoresOn]]
    raw: Sequence[ScoresOn]
    outside: Sequence[int]
    """Which of all these are of plugins in other processes: places in `plain`, and behind them in `raw`."""


class Scorers:
    """Asks these plugins and keeps what they say in `ranks`."""

    __slots__ = ("_forms", "_forms_of_many", "_names", "_names_of_many", "_plain", "_plugins", "ranks")

    def __init__(self, plugins: Sequence[Weighed], ranks: Ranks) -> None:
        self._plugins = plugins
        self.ranks = ranks
        self._plain: list[Weighed] = []
        self._forms: _Forms | None = None
        self._names: tuple[str, ...] | None = None
        self._forms_of_many: _FormsOfMany | None = None
        self._names_of_many: tuple[str, ...] | None = None

    async def ask_all(self, attempt: Attempt, feasible: Mask, point: int) -> None:
        """Ask about all rows. Shapes: feasible bool (n,). Raises: PluginError."""
        state, ranks = attempt.state, self.ranks

        def take(plugin: ScorePlugin, weight: int, raw: Scores) -> None:
            if ranks.add(plugin, weight, raw, state, feasible) and plugin.depends is not Depends.OBJECT:
                self._plain.append((plugin, weight))

        await ask_scores(self._plugins, attempt, point, take)

    def ask_each(self, attempt: Attempt, rows: Iterable[int], fits: Mask) -> set[int] | None:
        """Ask about a few rows, one by one; None where some plugin has no scalar form.

        The result are the rows that plugins in other processes are to be asked about first, by `bring`.
        Raises: PluginError.
        """
        if self._names is not attempt.nodes.resource_names:
            self._names = attempt.nodes.resource_names
            self._forms = self._scalar_forms(attempt)
        forms, ranks = self._forms, self.ranks
        if forms is None:
            return None
        unasked: set[int] = set()
        for row in rows:
            if not fits.item(row):
                ranks.take_out(row)
                continue
            final = [(weight, score_on(row)) for weight, score_on in forms.plain]
            raws = [score_on(row) for score_on in forms.raw]
            if forms.outside and (UNASKED in raws or any(score == UNASKED for _, score in final)):
                unasked.add(row)
                continue
            plain = 0 if ranks.of_objects is None else ranks.of_objects.item(row)
            for weight, score in final:
                plain += weight * score
            ranks.put(row, plain, raws, attempt.state, attempt.pod)
        if self._plain:
            attempt.meter.worked(self._plain[-1][0].name)
        return unasked

    def ask_many(self, attempt: Attempt, rows: Rows, fits: Mask) -> Rows | None:
        """Ask about some rows at once; None, and nothing is asked, where some plugin has no form for that.

        The result are the rows that plugins in other processes are to be asked about first, by `bring`.
        Shapes: rows intp (k,); fits bool (n,); result intp (j,). Raises: PluginError.
        """
        if self._names_of_many is not attempt.nodes.resource_names:
            self._names_of_many = attempt.nodes.resource_names
            self._forms_of_many = self._made_for_many(attempt)
        forms, ranks = self._forms_of_many, self.ranks
        if forms is None:
            return None
        rows, unasked = ranks.left_of(rows, fits), NO_ROWS
        finals = [scores_on(rows) for _, scores_on in forms.plain]
        raws = [scores_on(rows) for scores_on in forms.raw]
        if forms.outside:
            every = [*finals, *raws]
            there = np.logical_and.reduce([every[i] != UNASKED for i in forms.outside])
            if np.count_nonzero(there) < rows.size:
                unasked, rows = rows[~there], rows[there]
                finals, raws = [each[there] for each in finals], [each[there] for each in raws]
        plains: Ints = np.zeros(rows.size, dtype=np.int64)
        if ranks.of_objects is not None:
            plains = ranks.of_objects.take(rows)
        for (weight, _), scores in zip(forms.plain, finals, strict=True):
            plains += scores if weight == 1 else scores * weight
        ranks.put_many(rows, plains, raws)
        if self._plain:
            attempt.meter.worked(self._plain[-1][0].name)
        return unasked

    @property
    def outside(self) -> Sequence[ScorePlugin]:
        """The plugins in other processes among those that are asked about rows."""
        own = [part.plugin for part in self.ranks.own]
        return [plugin for plugin in (*(p for p, _ in self._plain), *own) if not plugin.in_process]

    async def bring(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Have the scores of plugins in other processes on these rows at hand. Shapes: rows intp (k,).

        Raises: PluginError.
        """
        await bring(self.outside, attempt, point, lambda plugin: _brought(plugin, attempt, rows), score_error)

    def _scalar_forms(self, attempt: Attempt) -> _Forms | None:
        own = [part.plugin for part in self.ranks.own]
        plain = [(weight, _form(plugin, attempt)) for plugin, weight in self._plain]
        raw = [plugin.score_row(attempt.state, attempt.pod, attempt.nodes) for plugin in own]
        if None in raw or any(form is None for _, form in plain):
            return None
        return _Forms(
            [(weight, form) for weight, form in plain if form],
            [form for form in raw if form],
            bool(self.outside),
        )

    def _made_for_many(self, attempt: Attempt) -> _FormsOfMany | None:
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        plain = [(weight, _form_of_many(plugin, attempt)) for plugin, weight in self._plain]
        raw = [part.plugin.score_rows(state, pod, nodes) for part in self.ranks.own]
        if None in raw or any(form is None for _, form in plain):
            return None
        everyone = [*(p for p, _ in self._plain), *(part.plugin for part in self.ranks.own)]
        return _FormsOfMany(
            [(weight, form) for weight, form in plain if form],
            [form for form in raw if form],
            [i for i, plugin in enumerate(everyone) if not plugin.in_process],
        )

    async def ask_some(self, attempt: Attempt, rows: Rows, fits: Mask, point: int) -> None:
        """Ask about some rows as a table of their own. Shapes: rows intp (k,). Raises: PluginError."""
        ranks = self.ranks
        rows = ranks.left_of(rows, fits)
        if not rows.size:
            return
        part = attempt.on(RowView(attempt.nodes, rows), attempt.state)
        before = None if ranks.of_objects is None else ranks.of_objects[rows]
        plains, raws = await self._asked(part, before, np.ones(rows.size, dtype=bool), point)
        ranks.put_many(rows, plains, raws)

    async def ask_all_again(self, attempt: Attempt, fits: Mask, point: int) -> None:
        """Ask the plugins whose scores pods change about all rows. Shapes: fits bool (n,).

        Raises: PluginError.
        """
        plains, raws = await self._asked(attempt, self.ranks.of_objects, fits, point)
        self.ranks.put_all(plains, raws, fits)

    async def _asked(
        self, part: Attempt, of_objects: Ints | None, fits: Mask, point: int
    ) -> tuple[Ints, Sequence[Scores]]:
        """The sums of final scores, with those that are given, and the raw scores that are not final.

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

        own = {each.plugin.name: (each.plugin, each.weight) for each in self.ranks.own}
        await ask_scores([*self._plain, *own.values()], part, point, take)
        return plains, [raws[name] for name in own]


def _form(plugin: ScorePlugin, attempt: Attempt) -> ScoreOn | None:
    """The scalar form of scores that are final; those of other processes have to be in range."""
    form = plugin.score_row(attempt.state, attempt.pod, attempt.nodes)
    return form if plugin.in_process else _checked(plugin.name, form, _check_one)


def _form_of_many(plugin: ScorePlugin, attempt: Attempt) -> ScoresOn | None:
    """The same of the form for some rows at once."""
    form = plugin.score_rows(attempt.state, attempt.pod, attempt.nodes)
    return form if plugin.in_process else _checked(plugin.name, form, _check_many)


def _checked(
    name: str, form: Callable[[R], S] | None, check: Callable[[str, S], None]
) -> Callable[[R], S] | None:
    """The form, whose scores are checked but where it has none yet."""
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


def _brought(plugin: ScorePlugin, attempt: Attempt, rows: Rows) -> Awaitable[None]:
    return plugin.bring_scores(attempt.state, attempt.pod, attempt.nodes, rows)
