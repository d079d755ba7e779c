"""Filter results of one class of pods: for each row the rejection's reason, refreshed where rows changed."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import numpy as np

from berth.evaluation.caching.answer_columns import VERDICTS, AnswerColumns
from berth.evaluation.caching.dirty_rows import DirtyRows, rows_of
from berth.evaluation.caching.remote_plugin import RemotePlugin, ask_side_by_side, unanswered, zero
from berth.evaluation.points.filter_accumulator import FilterAccumulator, OrderedFilter, rejected_by
from berth.evaluation.points.filtering import ask_filters, filter_codes
from berth.evaluation.points.reasons import Numbers, Reasons, filter_error
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Rejections
from berth.framework.interface import Depends, FilterPlugin, ReasonCodes, RowForm
from berth.snapshot.columns.growing import NO_ROWS, Mask, Rows
from berth.snapshot.row_view import RowView

CodeOf = Callable[[int], int]
ByRow = list[tuple[int, FilterPlugin, CodeOf, AnswerColumns | None]]
"""Plugins with their places, the code of a row, and the columns that have it once the row is not dirty."""


class FilterResults:
    """For each row, the reason of the first of these plugins that rejects it.

    Shapes: why (n,), the reasons' numbers, 0 where the pod fits; fits bool (n,).
    """

    __slots__ = (
        "_by_row",
        "_fixed",
        "_formless",
        "_forms",
        "_names",
        "_plugins",
        "_rejections",
        "_remote",
        "_row_plugins",
        "_within",
        "count",
        "fits",
        "reasons",
        "why",
    )

    def __init__(self, plugins: Sequence[OrderedFilter]) -> None:
        self._plugins = plugins
        self._row_plugins: Sequence[OrderedFilter] = ()
        self._remote: Sequence[RemotePlugin] = ()
        self._fixed: Mask | None = None
        self._forms: dict[str, RowForm[ReasonCodes]] = {}
        self._formless: Sequence[FilterPlugin] = ()
        self._by_row: ByRow | None = None
        self._names: tuple[str, ...] | None = None
        self._rejections: Rejections | None = None
        self._within: tuple[Rows, Rows] | None = None
        """The rows that were last asked about, and those of them that fit; None once a result changed."""
        self.reasons = Reasons()

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return 6 * self.fits.size + (0 if self._within is None else self._within[1].nbytes)

    async def begin(self, attempt: Attempt, candidates: Mask, point: int, *, kept: bool) -> None:
        """Run all plugins on the candidates; `kept` says whether dirty rows may be refreshed later.

        Raises: PluginError.
        """
        await self._ask_table(self._plugins, attempt, candidates, point)
        if kept:
            self._find_fixed_rows(attempt)

    def _find_fixed_rows(self, attempt: Attempt) -> None:
        """Find the rows whose rejection no pod can change, and the plugins to run on the others."""
        active = [placed for placed in self._plugins if placed[1].name not in attempt.state.skip_filter]
        places = [place for place, plugin in active if plugin.depends is not Depends.OBJECT]
        first = min(places, default=len(self._plugins) + 1)
        self._row_plugins = [placed for placed in active if placed[0] >= first]
        self._remote = [plugin for _, plugin in self._row_plugins if isinstance(plugin, RemotePlugin)]
        if self.count < self.fits.size:
            owners = self.reasons.places(self.why)
            fixed = (owners > 0) & (owners < first)
            self._fixed = fixed if fixed.any() else None

    def ask(self, attempt: Attempt, dirty: DirtyRows, point: int) -> Awaitable[None] | None:
        """Refresh the dirty rows: now (None), or once the result is awaited.

        Raises: PluginError.
        """
        if dirty.every:
            return self._ask_every(attempt, point)
        if not dirty.few and dirty.many is None:
            return None
        forms = None if dirty.many is not None else self._forms_by_row(attempt)
        if forms is None:
            return self._ask_some(attempt, dirty.rows(), point)
        unasked = self._ask_each(attempt, dirty.few, forms)
        return self._ask_remote_first(attempt, unasked, point) if unasked else None

    async def _ask_every(self, attempt: Attempt, point: int) -> None:
        """Run the plugins again on all rows whose result depends on pods."""
        fixed, before = self._fixed, self.why if self._fixed is not None else None
        others = np.ones(self.fits.size, dtype=bool) if fixed is None else ~fixed
        await self._ask_table(self._row_plugins, attempt, others, point)
        if before is not None:
            self.why[fixed] = before[fixed]

    async def _ask_table(
        self, plugins: Sequence[OrderedFilter], attempt: Attempt, candidates: Mask, point: int
    ) -> None:
        accumulator = FilterAccumulator(self.reasons, candidates)
        await ask_filters(plugins, attempt, accumulator, point)
        self.fits, self.why, self.count = accumulator.feasible, accumulator.why, accumulator.left
        self._rejections = self._within = None

    def fitting(self, within: Rows) -> Rows:
        """Those of the rows that the pod fits on, not to be written to.

        Pods of a group are tried within one array of rows: it is looked through again where a result changed.
        Shapes: within intp (k,); result intp (m,).
        """
        if self._within is None or self._within[0] is not within:
            self._within = within, within[self.fits[within]]
        return self._within[1]

    def rejections(self) -> Rejections | None:
        """The rejected rows in a diagnosis's form; the same object until a result changes."""
        if self._rejections is None and self.count < self.fits.size:
            self._rejections = rejected_by(self.why, self.reasons)
        return self._rejections

    def _forms_by_row(self, attempt: Attempt) -> ByRow | None:
        """The plugins with a function of one row each; None where one has none."""
        if self._names is not attempt.nodes.resource_names:
            self._make_forms(attempt)
        if not self._remote or self._by_row is None:
            return self._by_row
        return [
            _read_from_columns(form[0], form[1], attempt) if isinstance(form[1], RemotePlugin) else form
            for form in self._by_row
        ]

    def _make_forms(self, attempt: Attempt) -> None:
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        self._forms = {
            plugin.name: plugin.filter_by_row(state, pod, nodes) for _, plugin in self._row_plugins
        }
        self._formless = [
            plugin
            for _, plugin in self._row_plugins
            if self._forms[plugin.name].some is None and not isinstance(plugin, RemotePlugin)
        ]
        self._names = nodes.resource_names
        self._by_row = []
        for place, plugin in self._row_plugins:
            code_of = self._forms[plugin.name].one
            if code_of is None:
                self._by_row = None
                return
            self._by_row.append((place, plugin, code_of, None))

    def _ask_each(
        self, attempt: Attempt, rows: Iterable[int], forms: ByRow, *, asked: bool = False
    ) -> set[int]:
        """Refresh a few rows, one at a time; returns those that a remote plugin has to answer for first."""
        reasons, state, fixed = self.reasons, attempt.state, self._fixed
        unasked: set[int] = set()
        for row in rows:
            if fixed is not None and fixed.item(row):
                continue
            number = 0
            for place, plugin, code_of, columns in forms:
                if columns is not None and not asked and columns.is_dirty(VERDICTS, row):
                    unasked.add(row)
                    break
                code = code_of(row)
                if code:
                    number = reasons.number(place, plugin, state, code)
                    break
            if row not in unasked and number != self.why.item(row):
                self._set(row, number)
        if forms:
            attempt.state.meter.worked(forms[-1][1].name)
        return unasked

    async def _ask_remote_first(self, attempt: Attempt, rows: set[int], point: int) -> None:
        await self._ask_remote(attempt, rows_of(rows), point)
        forms = self._forms_by_row(attempt)
        assert forms is not None, "there were forms before"
        self._ask_each(attempt, rows, forms, asked=True)

    async def _ask_remote(self, attempt: Attempt, rows: Rows, point: int) -> None:
        await ask_side_by_side(self._remote, attempt, VERDICTS, rows, point=point, error=filter_error)

    def _ask_some(self, attempt: Attempt, rows: Rows, point: int) -> Awaitable[None] | None:
        """Refresh some rows together. Shapes: rows intp (k,)."""
        self._forms_by_row(attempt)
        if self._fixed is not None:
            rows = rows[~self._fixed[rows]]
        unasked = unanswered(self._remote, attempt, VERDICTS, rows) if self._remote else NO_ROWS
        if unasked.size or self._formless:
            return self._ask_first(attempt, rows, unasked, point)
        self._ask_together(attempt, rows, {})
        return None

    async def _ask_first(self, attempt: Attempt, rows: Rows, unasked: Rows, point: int) -> None:
        """The same, after remote plugins have answered for those, and others for a table of the rows."""
        if unasked.size:
            await self._ask_remote(attempt, unasked, point)
        tables = {plugin.name: await self._asked(plugin, attempt, rows, point) for plugin in self._formless}
        self._ask_together(attempt, rows, tables)

    def _ask_together(self, attempt: Attempt, rows: Rows, tables: Mapping[str, ReasonCodes]) -> None:
        why: Numbers = np.zeros(rows.size, dtype=np.uint32)
        for place, plugin in self._row_plugins:
            codes_of = self._forms[plugin.name].some
            if codes_of is not None:
                codes = codes_of(rows)
            elif isinstance(plugin, RemotePlugin):
                codes = plugin.codes_of(attempt, rows)
            else:
                codes = tables[plugin.name]
            if np.count_nonzero(codes):
                rejected = ((codes != 0) & (why == 0)).nonzero()[0]
                if rejected.size:
                    why[rejected] = self.reasons.numbers(place, plugin, attempt.state, codes[rejected])
        self._put(rows, why)
        if self._row_plugins:
            attempt.meter.worked(self._row_plugins[-1][1].name)

    async def _asked(self, plugin: FilterPlugin, attempt: Attempt, rows: Rows, point: int) -> ReasonCodes:
        part = attempt.on(RowView(attempt.nodes, rows), attempt.state)
        mark = part.record.begin(plugin.name, point)
        codes = await filter_codes(plugin, part)
        part.record.end(mark, rejected=int(np.count_nonzero(codes)))
        if part.meter.worked(plugin.name):
            await part.meter.breathe()
        return codes

    def _put(self, rows: Rows, why: Numbers) -> None:
        """Set the results of some rows. Shapes: rows intp (k,); why (k,)."""
        rejected = int(np.count_nonzero(why))
        if not rejected and self.count == self.fits.size:
            return
        self.count += int(np.count_nonzero(self.why.take(rows))) - rejected
        self.why[rows], self.fits[rows] = why, why == 0
        self._rejections = self._within = None

    def _set(self, row: int, number: int) -> None:
        fitted = self.fits.item(row)
        self.why[row], self._rejections = number, None
        if fitted != (not number):
            self.fits[row], self._within = not number, None
            self.count += -1 if fitted else 1


def _read_from_columns(
    place: int, plugin: RemotePlugin, attempt: Attempt
) -> tuple[int, FilterPlugin, CodeOf, AnswerColumns | None]:
    columns = plugin.read(attempt, VERDICTS)
    return place, plugin, zero if columns is None else columns.code, columns
