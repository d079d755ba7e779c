"""Verdicts of one class of pods: for each row the reason against it, asked for anew where rows changed."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import numpy as np

from berth.evaluation.asking import bring
from berth.evaluation.filtering import ask_filters, codes_on
from berth.evaluation.reasons import Numbers, Reasons, filter_error
from berth.evaluation.sieve import Placed, Sieve, rejected_by
from berth.framework.attempt import Attempt
from berth.framework.diagnosis import Rejections
from berth.framework.interface import UNASKED, UNASKED_CODE, Depends, FilterPlugin, ReasonCodes
from berth.snapshot.columns import NO_ROWS, Mask, Rows
from berth.snapshot.row_view import RowView

CodeOn = Callable[[int], int]
CodesOn = Callable[[Rows], ReasonCodes]


class Verdicts:
    """What the first plugin that turns a row down says, of these plugins.

    Shapes: why (n,), the reasons' numbers, 0 where the pod fits; fits bool (n,).
    """

    __slots__ = (
        "_against",
        "_by_row",
        "_fixed",
        "_forms",
        "_forms_of_many",
        "_names",
        "_names_of_many",
        "_plugins",
        "count",
        "fits",
        "reasons",
        "why",
    )

    def __init__(self, plugins: Sequence[Placed]) -> None:
        self._plugins = plugins
        self._by_row: Sequence[Placed] = ()
        self._fixed: Mask | None = None
        self._forms: list[tuple[int, FilterPlugin, CodeOn]] | None = None
        self._names: tuple[str, ...] | None = None
        self._forms_of_many: list[tuple[int, FilterPlugin, CodesOn]] | None = None
        self._names_of_many: tuple[str, ...] | None = None
        self._against: Rejections | None = None
        self.reasons = Reasons()

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return 6 * self.fits.size

    async def ask_all(self, attempt: Attempt, candidates: Mask, point: int, *, kept: bool) -> None:
        """Ask about all rows that are candidates; `kept` says whether some may be asked about again later.

        Raises: PluginError.
        """
        sieve = Sieve(self.reasons, candidates)
        await ask_filters(self._plugins, attempt, sieve, point)
        self.fits, self.why = sieve.alive, sieve.why
        self.count = sieve.left
        if kept:
            self._tell_apart(attempt)

    def _tell_apart(self, attempt: Attempt) -> None:
        """Find the rows whose verdicts stay while nodes do, and the plugins to ask about the others."""
        active = [placed for placed in self._plugins if placed[1].name not in attempt.state.skip_filter]
        places = [place for place, plugin in active if plugin.depends is not Depends.OBJECT]
        first = min(places, default=len(self._plugins) + 1)
        self._by_row = [placed for placed in active if placed[0] >= first]
        if self.count < self.fits.size:
            owners = self.reasons.places(self.why)
            fixed = (owners > 0) & (owners < first)
            self._fixed = fixed if fixed.any() else None

    async def ask_all_again(self, attempt: Attempt, point: int) -> None:
        """Ask about all rows whose verdicts pods change. Raises: PluginError."""
        fixed = self._fixed
        others = np.ones(self.fits.size, dtype=bool) if fixed is None else ~fixed
        sieve = Sieve(self.reasons, others)
        await ask_filters(self._by_row, attempt, sieve, point)
        if fixed is not None:
            sieve.why[fixed] = self.why[fixed]
        self.fits, self.why, self.count, self._against = sieve.alive, sieve.why, sieve.left, None

    def rejections(self) -> Rejections | None:
        """The rows that are turned down, as a diagnosis has them; the same object until one changes."""
        if self._against is None and self.count < self.fits.size:
            self._against = rejected_by(self.why, self.reasons)
        return self._against

    def ask_each(self, attempt: Attempt, rows: Iterable[int]) -> set[int] | None:
        """Ask about a few rows, one by one; None where some plugin has no scalar form.

        The result are the rows that plugins in other processes are to be asked about first, by `bring`.
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
    def outside(self) -> Sequence[FilterPlugin]:
        """The plugins in other processes among those that are asked about rows."""
        return [plugin for _, plugin in self._by_row if not plugin.in_process]

    async def bring(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Have the answers of plugins in other processes on these rows at hand. Shapes: rows intp (k,).

        Raises: PluginError.
        """
        await bring(
            self.outside, attempt, point, lambda plugin: _brought(plugin, attempt, rows), filter_error
        )

    def _scalar_forms(self, attempt: Attempt) -> list[tuple[int, FilterPlugin, CodeOn]] | None:
        """The scalar forms of the plugins to ask about rows; None where one of them has none."""
        if self._names is not attempt.nodes.resource_names:
            self._names = attempt.nodes.resource_names
            self._forms = scalar_forms(self._by_row, attempt)
        return self._forms

    def ask_many(self, attempt: Attempt, rows: Rows) -> Rows | None:
        """Ask about some rows at once; None, and nothing is asked, where some plugin has no form for that.

        The result are the rows that plugins in other processes are to be asked about first, by `bring`.
        Shapes: rows intp (k,); result intp (j,). Raises: PluginError.
        """
        if self._names_of_many is not attempt.nodes.resource_names:
            self._names_of_many = attempt.nodes.resource_names
            self._forms_of_many = forms_of_many(self._by_row, attempt)
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
        """Take in the reasons against some rows. Shapes: rows intp (k,); why (k,)."""
        rejected = int(np.count_nonzero(why))
        if not rejected and self.count == self.fits.size:
            return
        self.count += int(np.count_nonzero(self.why.take(rows))) - rejected
        self.why[rows], self.fits[rows], self._against = why, why == 0, None

    def _set(self, row: int, number: int) -> None:
        fitted = self.fits.item(row)
        self.why[row], self._against = number, None
        if fitted != (not number):
            self.fits[row] = not number
            self.count += -1 if fitted else 1

    async def ask_some(self, attempt: Attempt, rows: Rows, point: int) -> None:
        """Ask about some rows at once. Shapes: rows intp (k,). Raises: PluginError."""
        if self._fixed is not None:
            rows = rows[~self._fixed[rows]]
        nodes, reasons = attempt.nodes, self.reasons
        why: Numbers = np.zeros(rows.size, dtype=np.uint32)
        places = np.zeros(rows.size, dtype=np.int64)
        # In-process plugins first: of rows that one of them turns down, only plugins before it need be asked.
        view = RowView(nodes, rows)
        for place, plugin in sorted(self._by_row, key=lambda placed: not placed[1].in_process):
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


def _brought(plugin: FilterPlugin, attempt: Attempt, rows: Rows) -> Awaitable[None]:
    return plugin.bring_verdicts(attempt.state, attempt.pod, attempt.nodes, rows)


def scalar_forms(
    plugins: Sequence[Placed], attempt: Attempt
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
    plugins: Sequence[Placed], attempt: Attempt
) -> list[tuple[int, FilterPlugin, CodesOn]] | None:
    """The same of the forms for some rows at once."""
    forms = []
    for place, plugin in plugins:
        form = plugin.filter_rows(attempt.state, attempt.pod, attempt.nodes)
        if form is None:
            return None
        forms.append((place, plugin, form))
    return forms
