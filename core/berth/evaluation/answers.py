"""What the plugins of one profile say of one class of pods, row by row, as far as it is known.

Answers begin empty: every row is dirty. A cycle asks about the dirty rows; from then on only rows that
changed are dirty, unless nodes, or what answers rest on besides rows, became others: then all are again.

    begin --> pre_filter --> refresh --> (unsettled filters, sampling, extenders)
                                |
                                +--> pre_score --> refresh_scores --> ranks --> the highest --> end

Plugins that have no basis for a pod are *unsettled*: they are no part of this, and are asked about all nodes
in every cycle, beside it. Source: docs/decisions/0008-equal-pods.md.
"""

from typing import Any

import numpy as np

from berth.evaluation.node_plugins import NodePlugins, Unsettled
from berth.evaluation.pre_filtering import PreFilterOutcome, run_pre_filters
from berth.evaluation.ranks import Ranks
from berth.evaluation.scorers import Scorers
from berth.evaluation.scoring import run_pre_scores
from berth.evaluation.validity import Validity
from berth.evaluation.verdicts import Verdicts
from berth.evaluation.written import Written
from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import OverBudgetError
from berth.framework.cycle_state import CycleState
from berth.snapshot.columns import Mask, Rows

FEW = 32
"""So many rows are asked about one by one where all plugins can do that."""
MANY = 64
"""So many dirty rows are cut out of the table in any cluster, and in a large one, one row in `SHARE`. Where
more are dirty, plugins whose answers pods change are asked about the whole table: that takes less time."""
SHARE = 32
MOST_REASONS = 4096
"""So many more reasons than there are nodes are remembered of one class of pods."""

ALL_SETTLED: frozenset[str] = frozenset()


class StartOverError(Exception):
    """What is known cannot be brought up to date: every row is to be asked about anew, in a new state."""


class Answers:
    """Answers of all plugins but the unsettled ones; those that are `kept` serve further pods of the class.

    Raises (all that ask plugins): PluginError where a plugin fails; StartOverError where it might not have
    failed, had all rows been asked about.
    """

    def __init__(self, plugins: NodePlugins, *, kept: bool = False, detailed: bool = False) -> None:
        self.plugins = plugins
        self.kept = kept
        self.asked_in = 0
        """The number of the cycle in which the class was asked for last."""
        self._detailed = detailed
        self.clear()

    def clear(self) -> None:
        """Forget everything: all rows are dirty."""
        self.known = False
        """Whether this cycle has the answers of earlier ones."""
        self.scored = False
        self.size_known = False
        """Whether `size_bytes` is what it was when it was looked at last."""
        self._away = ALL_SETTLED
        self._written: Written | None = {} if self.kept else None
        self._values: dict[Any, Any] = {}
        self._skip_filter = self._skip_score = ALL_SETTLED
        self._validity: Validity | None = None
        self._unsettled: Unsettled | None = None
        self._verdicts: Verdicts | None = None
        self._scorers: Scorers | None = None
        self._dirty: set[int] = set()
        self._moved: set[int] = set()
        self._all_dirty = self._all_moved = False
        """Whether these are so many that all rows are asked about, or scored, again."""

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts of the settled plugins."""
        assert self._verdicts is not None, "refresh comes first"
        return self._verdicts

    @property
    def ranks(self) -> Ranks:
        """The scores of the settled plugins."""
        assert self._scorers is not None, "refresh_scores comes first"
        return self._scorers.ranks

    @property
    def unsettled(self) -> Unsettled | None:
        """The plugins to be asked about all nodes, None for none."""
        return self._unsettled

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        ranks = 0 if self._scorers is None else self._scorers.ranks.size_bytes
        return ranks + (0 if self._verdicts is None else self._verdicts.size_bytes)

    def begin(self, attempt: Attempt) -> None:
        """Begin a cycle: find the dirty rows, and leave in its state what plugins left in the first one's."""
        if self.known and not self._follow(attempt):
            self.clear()
        if self._validity is None:
            if self.kept:
                self._validity = Validity(self.plugins, attempt.nodes)
            return
        attempt.state.take_over(self._values)
        if not self._validity.holds(attempt):
            raise StartOverError

    def _follow(self, attempt: Attempt) -> bool:
        assert self._validity is not None, "what is known rests on something"
        if not self._validity.follow(attempt, self._dirty):
            return False
        rows = len(attempt.nodes)
        if len(self._dirty) > max(MANY, rows // SHARE):
            self._dirty.clear()
            self._all_dirty = True
        return len(self.verdicts.reasons.statuses) <= rows + MOST_REASONS

    def pre_filtered(self, state: CycleState) -> bool:
        """Whether PreFilter has nothing to ask of any plugin; whom it leaves out is in the state then."""
        if not self.known or self._unsettled is not None:
            return False
        state.skip_filter = self._skip_filter
        return True

    async def pre_filter(self, attempt: Attempt) -> PreFilterOutcome:
        """Run the phase, of plugins whose part in it is not known yet."""
        if self._unsettled is not None:
            outcome = await self._pre_filter_again(self._unsettled, attempt)
        else:
            plugins = self.plugins.plugins.pre_filter
            outcome = await run_pre_filters(plugins, attempt, self._written)
            if not outcome.status.ok or outcome.node_names is not None:
                self.kept = False
            elif self.kept and self._validity is not None:
                self._settle(self._validity, attempt)
        return outcome

    def _settle(self, validity: Validity, attempt: Attempt) -> None:
        validity.settle(attempt)
        self._away = validity.away
        self._skip_filter = attempt.state.skip_filter - self._away
        if self._away:
            self._unsettled = Unsettled(self.plugins, self._away)

    async def _pre_filter_again(self, unsettled: Unsettled, attempt: Attempt) -> PreFilterOutcome:
        outcome = await run_pre_filters(unsettled.pre_filter, attempt)
        if not outcome.status.ok or outcome.node_names is not None:
            raise StartOverError
        attempt.state.skip_filter |= self._skip_filter
        return outcome

    def refreshed(self, attempt: Attempt) -> bool:
        """Ask about the dirty rows if that can be done one by one; whether none is dirty then."""
        if self._verdicts is None or self._all_dirty:
            return False
        dirty = self._dirty
        if not dirty:
            return True
        try:
            unasked = None if len(dirty) > FEW else self._verdicts.ask_each(attempt, dirty)
        except OverBudgetError:
            raise
        except Exception as error:
            raise StartOverError from error
        if unasked is None:
            return False
        self._moved |= dirty - unasked
        self._dirty = unasked
        return not unasked

    async def refresh(self, attempt: Attempt, candidates: Mask | None, point: int) -> Verdicts:
        """Ask Filter plugins about the dirty rows; if all are, about the candidates alone (None: all rows).

        Shapes: candidates bool (n,).
        """
        try:
            if self._verdicts is None:
                await self._ask_all(attempt, candidates, point)
            elif self._all_dirty:
                await self._verdicts.ask_all_again(attempt, point)
                self._all_dirty, self._all_moved = False, True
            elif not await self._refreshed_with_others(self._verdicts, attempt, point):
                dirty, self._dirty = self._dirty, set()
                await self._verdicts.ask_some(attempt, rows_of(dirty), point)
                self._moved |= dirty
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        return self.verdicts

    async def _refreshed_with_others(self, verdicts: Verdicts, attempt: Attempt, point: int) -> bool:
        """Ask about the dirty rows one by one, other processes first; whether none is dirty then."""
        if self.refreshed(attempt):
            return True
        if len(self._dirty) > FEW or not verdicts.outside:
            return False
        await verdicts.bring(attempt, rows_of(self._dirty), point)
        return self.refreshed(attempt)

    def _start_over(self, error: Exception) -> None:
        if self.known or self._away:
            raise StartOverError from error

    async def _ask_all(self, attempt: Attempt, candidates: Mask | None, point: int) -> None:
        settled = [placed for placed in self.plugins.filters if placed[1].name not in self._away]
        verdicts = Verdicts(settled)
        if candidates is None or self.kept:
            candidates = np.ones(len(attempt.nodes), dtype=bool)
        await verdicts.ask_all(attempt, candidates, point, kept=self.kept)
        self._verdicts = verdicts

    def pre_scored(self, state: CycleState) -> bool:
        """Whether PreScore has nothing to ask of any plugin; whom it leaves out is in the state then."""
        if not self.scored or self._unsettled is not None:
            return False
        state.skip_score = self._skip_score
        return True

    async def pre_score(self, attempt: Attempt, feasible: Mask) -> None:
        """Run the phase, of plugins whose part in it is not known yet. Shapes: feasible bool (n,)."""
        state = attempt.state
        if not self.scored:
            await run_pre_scores(self.plugins.plugins.pre_score, attempt, feasible, self._written)
            self._skip_score = state.skip_score - self._away
        elif self._unsettled is not None:
            await run_pre_scores(self._unsettled.pre_score, attempt, feasible)
            state.skip_score |= self._skip_score

    def refreshed_scores(self, attempt: Attempt) -> bool:
        """Score the rows that became others if that can be done one by one; whether totals are there then."""
        scorers, moved = self._scorers, self._moved
        if scorers is None or self._all_moved or not self.known:
            return False
        if not moved:
            return scorers.ranks.totals is not None
        try:
            unasked = None if len(moved) > FEW else scorers.ask_each(attempt, moved, self.verdicts.fits)
        except OverBudgetError:
            raise
        except Exception as error:
            raise StartOverError from error
        if unasked is None:
            return False
        self._moved = unasked
        return not unasked and scorers.ranks.totals is not None

    async def refresh_scores(self, attempt: Attempt, feasible: Mask, point: int) -> Ranks:
        """Ask Score plugins about the rows that became others since they were asked, where the pod fits.

        Shapes: feasible bool (n,).
        """
        fits = self.verdicts.fits if self.kept else feasible
        try:
            if not self.scored:
                await self._score_all(attempt, fits, point)
            elif self._all_moved:
                await self._score_all_again(attempt, point)
            elif not await self._rescored_with_others(attempt, point) and self._moved:
                await self._score_moved(attempt, fits, point)
            self.ranks.add_up(attempt.state, attempt.pod, fits)
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        return self.ranks

    async def _rescored_with_others(self, attempt: Attempt, point: int) -> bool:
        """Score rows that became others one by one, other processes first; whether totals are there then."""
        if self.refreshed_scores(attempt):
            return True
        scorers = self._scorers
        if scorers is None or not (self._moved and scorers.outside) or len(self._moved) > FEW:
            return False
        await scorers.bring(attempt, rows_of(self._moved), point)
        return self.refreshed_scores(attempt)

    async def _score_all(self, attempt: Attempt, fits: Mask, point: int) -> None:
        settled = [weighed for weighed in self.plugins.plugins.score if weighed[0].name not in self._away]
        self._scorers = Scorers(settled, Ranks(fits.size, kept=self.kept, detailed=self._detailed))
        await self._scorers.ask_all(attempt, fits, point)
        self._moved.clear()
        self._all_moved = False
        self.scored, self.size_known = True, False

    async def _score_all_again(self, attempt: Attempt, point: int) -> None:
        assert self._scorers is not None, "what was scored has been asked about"
        await self._scorers.ask_all_again(attempt, self.verdicts.fits, point)
        self._moved.clear()
        self._all_moved = False

    async def _score_moved(self, attempt: Attempt, fits: Mask, point: int) -> None:
        scorers, moved, self._moved = self._scorers, self._moved, set()
        assert scorers is not None, "what was scored has been asked about"
        rows = rows_of(moved)
        there = fits[rows]
        for row in rows[~there].tolist():
            scorers.ranks.take_out(row)
        if there.any():
            await scorers.ask_some(attempt, rows[there], point)

    def check(self, attempt: Attempt) -> None:
        """Make sure that what plugins in other processes answered in this cycle goes with what is known."""
        if self.known and self._validity is not None and not self._validity.holds(attempt):
            raise StartOverError

    def end(self, attempt: Attempt) -> None:
        """End a cycle that came to a verdict on all nodes: keep what serves further pods."""
        if self.known and self._written is None:
            return
        if not self.kept or self._verdicts is None or self._validity is None:
            self.kept = False
            return
        if not self.known and not self._validity.confirm(attempt):
            self.clear()
            return
        self.known = True
        for name, values in (self._written or {}).items():
            if name not in self._away:
                self._values |= values
        if self.scored:
            self._written = None


def rows_of(numbers: set[int]) -> Rows:
    """The rows in ascending order. Shapes: result intp (k,)."""
    rows = np.fromiter(numbers, dtype=np.intp, count=len(numbers))
    rows.sort()
    return rows
