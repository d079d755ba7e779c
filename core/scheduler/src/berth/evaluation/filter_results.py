"""Filter results of one class of pods: for each row the rejection's reason, refreshed where rows changed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import numpy as np

from berth.evaluation.filter_accumulator import FilterAccumulator, OrderedFilter, rejected_by
from berth.evaluation.filtering import ask_filters, codes_on
from berth.evaluation.plugin_calls import fetch_side_by_side
from berth.evaluation.reasons import Numbers, Reasons, filter_error
from berth.framework.attempt import Attempt
from berth.framework.diagnosis import Rejections
from berth.framework.interface import UNASKED, UNASKED_CODE, Depends, FilterPlugin, ReasonCodes
from berth.snapshot.columns import NO_ROWS, Mask, Rows
from berth.snapshot.row_view import RowView

CodeOn = Callable[[int], int]
CodesOn = Callable[[Rows], ReasonCodes]


class FilterResults:
    """For each row, the reason of the first of these plugins that rejects it.

    Shapes: why (n,), the reasons' numbers, 0 where the pod fits; fits bool (n,).
    """

    __slots__ = (
        "_fixed",
        "_forms",
        "_forms_of_many",
        "_names",
        "_names_of_many",
        "_plugins",
        "_rejections",
        "_row_plugins",
        "count",
        "fits",
        "reasons",
        "why",
    )

    def __init__(self, plugins: Sequence[OrderedFilter]) -> None:
        self._plugins = plugins
        self._row_plugins: Sequence[OrderedFilter] = ()
        self._fixed: Mask | None = None
        self._forms: list[tuple[int, FilterPlugin, CodeOn]] | None = None
        self._names: tuple[str, ...] | None = None
        self._forms_of_many: list[tuple[int, FilterPlugin, CodesOn]] | None = None
        self._names_of_many: tuple[str, ...] | None = None
        self._rejections: Rejections | None = None
        self.reasons = Reasons()

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return 6 * self.fits.size

    async def ask_all(self, attempt: Attempt, candidates: Mask, point: int, *, kept: bool) -> None:
        """Run the plugins on the candidates; `kept` says whether dirty rows may be refreshed later.

        Raises: PluginError.
        """
        accumulator = FilterAccumulator(self.reasons, candidates)
        await ask_filters(self._plugins, attempt, accumulator, point)
        self.fits, self.why = accumulator.feasible, accumulator.why
        self.count = accumulator.left
        if kept:
            self._find_fixed_rows(attempt)

    def _find_fixed_rows(self, attempt: Attempt) -> None:
        """Find the rows whose rejection no pod can change, and the plugins to run on the others."""
        active = [placed for placed in self._plugins if placed[1].name not in attempt.state.skip_filter]
        places = [place for place, plugin in active if plugin.depends is not Depends.OBJECT]
        first = min(places, default=len(self._plugins) + 1)
        self._row_plugins = [placed for placed in active if placed[0] >= first]
        if self.count < self.fits.size:
            owners = self.reasons.places(self.why)
            fixed = (owners > 0) & (owners < first)
            self._fixed = fixed if fixed.any() else None

    async def ask_all_again(self, attempt: Attempt, point: int) -> None:
        """Run the plugins again on all rows whose result depends on pods. Raises: PluginError."""
        fixed = self._fixed
        others = np.ones(self.fits.size, dtype=bool) if fixed is None else ~fixed
        accumulator = FilterAccumulator(self.reasons, others)
        await ask_filters(self._row_plugins, attempt, accumulator, point)
        if fixed is not None:
            accumulator.why[fixed] = self.why[fixed]
        self.fits, self.why, self.count, self._rejections = (
            accumulator.feasible,
            accumulator.why,
            accumulator.left,
            None,
        )

    def rejections(self) -> Rejections | None:
        """The rejected rows in a diagnosis's form; the same object until a result changes."""
        if self._rejections is None and self.count < self.fits.size:
            self._rejections = rejected_by(self.why, self.reasons)
        return self._rejections

    def ask_each(self, attempt: Attempt, rows: Iterable[int]) -> set[int] | None:
        """Refresh a few rows, one at a time; None where some plugin has no scalar form.

        Returns the rows whose results have to be fetched from sidecars first (`fetch`).
        Raises: PluginError.
        """
        forms = self._scalar_forms(attempt)
        if forms is None:
            return None
        reasons, state, fixed = self.reasons, attempt.state, self._fixed
        unasked: set[int] = set()
        for row in rows:
            if fixed is not None and fixed.item(row):
                continue
            number = 0
            for place, plugin, code_on in forms:
                code = code_on(row)
                if code == UNASKED:
                    unasked.add(row)
                    break
                if code:
                    number = reasons.number(place, plugin, state, code)
                    break
            if row not in unasked and number != self.why.item(row):
                self._set(row, number)
        if forms:
            attempt.meter.worked(forms[-1][1].name)
        return unasked

    @property
    def sidecars(self) -> Sequence[FilterPlugin]:
        """The sidecars among the plugins that are run on dirty rows."""
        return [plugin for _, plugin in self._row_plugins if not plugin.in_process]

    async def fetch(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Fetch the sidecars' results for these rows. Shapes: rows intp (k,).

        Raises: PluginError.
        """
        await fetch_side_by_side(
            self.sidecars, attempt, point, lambda plugin: _fetched(plugin, attempt, rows), filter_error
        )

    def _scalar_forms(self, attempt: Attempt) -> list[tuple[int, FilterPlugin, CodeOn]] | None:
        """The scalar forms of the plugins that are run on dirty rows; None where one has none."""
        if self._names is not attempt.nodes.resource_names:
            self._names = attempt.nodes.resource_names
            self._forms = scalar_forms(self._row_plugins, attempt)
        return self._forms

    def ask_many(self, attempt: Attempt, rows: Rows) -> Rows | None:
        """Refresh some rows at once; None, and no plugin is run, where one has no form for several rows.

        Returns the rows whose results have to be fetched from sidecars first (`fetch`).
        Shapes: rows intp (k,); result intp (j,). Raises: PluginError.
        """
        if self._names_of_many is not attempt.nodes.resource_names:
            self._names_of_many = attempt.nodes.resource_names
            self._forms_of_many = forms_of_many(self._row_plugins, attempt)
        forms = self._forms_of_many
        if forms is None:
            return None
        if self._fixed is not None:
            rows = rows[~self._fixed[rows]]
        why: Numbers = np.zeros(rows.size, dtype=np.uint32)
        unasked = NO_ROWS
        for place, plugin, codes_of in forms:
            codes = codes_of(rows)
            if not plugin.in_process:
                unanswered = ((codes == UNASKED_CODE) & (why == 0)).nonzero()[0]
                if unanswered.size:
                    unasked = np.concatenate((unasked, rows[unanswered]))
                    answered = np.ones(rows.size, dtype=bool)
                    answered[unanswered] = False
                    rows, why, codes = rows[answered], why[answered], codes[answered]
            if np.count_nonzero(codes):
                rejected = ((codes != 0) & (why == 0)).nonzero()[0]
                if rejected.size:
                    why[rejected] = self.reasons.numbers(place, plugin, attempt.state, codes[rejected])
        self._put(rows, why)
        if forms:
            attempt.meter.worked(forms[-1][1].name)
        return unasked

    def _put(self, rows: Rows, why: Numbers) -> None:
        """Set the results of some rows. Shapes: rows intp (k,); why (k,)."""
        rejected = int(np.count_nonzero(why))
        if not rejected and self.count == self.fits.size:
            return
        self.count += int(np.count_nonzero(self.why.take(rows))) - rejected
        self.why[rows], self.fits[rows], self._rejections = why, why == 0, None

    def _set(self, row: int, number: int) -> None:
        fitted = self.fits.item(row)
        self.why[row], self._rejections = number, None
        if fitted != (not number):
            self.fits[row] = not number
            self.count += -1 if fitted else 1

    async def ask_some(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Refresh some rows as a table of their own. Shapes: rows intp (k,). Raises: PluginError."""
        if self._fixed is not None:
            rows = rows[~self._fixed[rows]]
        nodes, reasons = attempt.nodes, self.reasons
        why: Numbers = np.zeros(rows.size, dtype=np.uint32)
        places = np.zeros(rows.size, dtype=np.int64)
        # In-process plugins first: on rows that one of them rejects, only plugins before it need to run.
        view = RowView(nodes, rows)
        for place, plugin in sorted(self._row_plugins, key=lambda placed: not placed[1].in_process):
            asked = ((places == 0) | (places > place)).nonzero()[0]
            if not asked.size:
                continue
            if asked.size != len(view):
                view = RowView(nodes, rows[asked])
            codes = await self._asked(plugin, attempt.on(view, attempt.state), point)
            rejected = codes.nonzero()[0]
            if rejected.size:
                numbers = reasons.numbers(place, plugin, attempt.state, codes[rejected])
                why[asked[rejected]], places[asked[rejected]] = numbers, place
        self._put(rows, why)

    async def _asked(self, plugin: FilterPlugin, part: Attempt, point: int) -> ReasonCodes:
        mark = part.record.begin(plugin.name, point)
        codes = await codes_on(plugin, part)
        part.record.end(mark, rejected=int(np.count_nonzero(codes)))
        if part.meter.worked(plugin.name):
            await part.meter.breathe()
        return codes


def _fetched(plugin: FilterPlugin, attempt: Attempt, rows: Rows) -> Awaitable[None]:
    return plugin.fetch_verdicts(attempt.state, attempt.pod, attempt.nodes, rows)


def scalar_forms(
    plugins: Sequence[OrderedFilter], attempt: Attempt
) -> list[tuple[int, FilterPlugin, CodeOn]] | None:
    """The plugins' scalar forms for the attempt's pod; None where one of them has none."""
    forms = []
    for place, plugin in plugins:
        form = plugin.filter_row(attempt.state, attempt.pod, attempt.nodes)
        if form is None:
            return None
        forms.append((place, plugin, form))
    return forms


def forms_of_many(
    plugins: Sequence[OrderedFilter], attempt: Attempt
) -> list[tuple[int, FilterPlugin, CodesOn]] | None:
    """The plugins' forms for several rows at once; None where one of them has none."""
    forms = []
    for place, plugin in plugins:
        form = plugin.filter_rows(attempt.state, attempt.pod, attempt.nodes)
        if form is None:
            return None
        forms.append((place, plugin, form))
    return forms
