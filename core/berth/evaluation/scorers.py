"""Scores of one class of pods: Score plugins asked about all rows, or about rows that changed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from berth.evaluation.ranks import Ranks
from berth.evaluation.scoring import Weighed, ask_scores, check_range
from berth.framework.attempt import Attempt
from berth.framework.interface import Depends, ScorePlugin, Scores
from berth.snapshot.columns import Ints, Mask, Rows
from berth.snapshot.row_view import RowView

ScoreOn = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class _Forms:
    """The scalar forms of raw scores that are final, with their weights, and of those that are not."""

    plain: Sequence[tuple[int, ScoreOn]]
    raw: Sequence[ScoreOn]


class Scorers:
    """Asks these plugins and keeps what they say in `ranks`."""

    __slots__ = ("_forms", "_names", "_plain", "_plugins", "ranks")

    def __init__(self, plugins: Sequence[Weighed], ranks: Ranks) -> None:
        self._plugins = plugins
        self.ranks = ranks
        self._plain: list[Weighed] = []
        self._forms: _Forms | None = None
        self._names: tuple[str, ...] | None = None

    async def ask_all(self, attempt: Attempt, feasible: Mask, point: int) -> None:
        """Ask about all rows. Shapes: feasible bool (n,). Raises: PluginError."""
        state, ranks = attempt.state, self.ranks

        def take(plugin: ScorePlugin, weight: int, raw: Scores) -> None:
            if ranks.add(plugin, weight, raw, state, feasible) and plugin.depends is not Depends.OBJECT:
                self._plain.append((plugin, weight))

        await ask_scores(self._plugins, attempt, point, take)

    def ask_each(self, attempt: Attempt, rows: Iterable[int], fits: Mask) -> bool:
        """Ask about a few rows, one by one; False where some plugin has no scalar form.

        Raises: PluginError.
        """
        if self._names is not attempt.nodes.resource_names:
            self._names = attempt.nodes.resource_names
            self._forms = self._scalar_forms(attempt)
        forms, ranks = self._forms, self.ranks
        if forms is None:
            return False
        for row in rows:
            if not fits.item(row):
                ranks.take_out(row)
                continue
            plain = 0 if ranks.of_objects is None else ranks.of_objects.item(row)
            for weight, score_on in forms.plain:
                plain += weight * score_on(row)
            ranks.put(row, plain, [score_on(row) for score_on in forms.raw], attempt.state, attempt.pod)
        if self._plain:
            attempt.meter.worked(self._plain[-1][0].name)
        return True

    def _scalar_forms(self, attempt: Attempt) -> _Forms | None:
        plain, raw = [], []
        for plugin, weight in self._plain:
            form = plugin.score_row(attempt.state, attempt.pod, attempt.nodes)
            if form is None:
                return None
            plain.append((weight, form))
        for part in self.ranks.own:
            form = part.plugin.score_row(attempt.state, attempt.pod, attempt.nodes)
            if form is None:
                return None
            raw.append(form)
        return _Forms(plain, raw)

    async def ask_some(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Ask about some rows at once, on which the pod fits. Shapes: rows intp (k,). Raises: PluginError."""
        ranks, part = self.ranks, attempt.on(RowView(attempt.nodes, rows), attempt.state)
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
                check_range(plugin.name, raw[fits])
            plains += raw if weight == 1 else raw * weight

        own = {each.plugin.name: (each.plugin, each.weight) for each in self.ranks.own}
        await ask_scores([*self._plain, *own.values()], part, point, take)
        return plains, [raws[name] for name in own]
