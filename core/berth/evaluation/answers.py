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

from berth.evaluation.dirty_rows import DirtyRows
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

MAX_REASONS = 4096
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
        self.waited = False
        """Whether anything was awaited since the cycle began, within these answers or beside them."""
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
        self.unsettled: Unsettled | None = None
        """The plugins to be asked about all nodes, None for none."""
        self._verdicts: Verdicts | None = None
        self._scorers: Scorers | None = None
        self._dirty = DirtyRows()
        self._moved = DirtyRows()
        """The rows to be scored again: plugins turned them down, or not, after they changed."""

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
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        ranks = 0 if self._scorers is None else self._scorers.ranks.size_bytes
        return ranks + (0 if self._verdicts is None else self._verdicts.size_bytes)

    def begin(self, attempt: Attempt) -> None:
        """Begin a cycle: find the dirty rows, and leave in its state what plugins left in the first one's."""
        self.waited = False
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
        return len(self.verdicts.reasons.statuses) <= len(attempt.nodes) + MAX_REASONS

    def pre_filtered(self, state: CycleState) -> bool:
        """Whether PreFilter has nothing to ask of any plugin; whom it leaves out is in the state then."""
        if not self.known or self.unsettled is not None:
            return False
        state.skip_filter = self._skip_filter
        return True

    async def pre_filter(self, attempt: Attempt) -> PreFilterOutcome:
        """Run the phase, of plugins whose part in it is not known yet."""
        if self.unsettled is not None:
            outcome = await self._pre_filter_again(self.unsettled, attempt)
        else:
            plugins = self.plugins
            outcome = await run_pre_filters(plugins.pre_filter, attempt, self._written)
            last = outcome.ended_by
            attempt.state.skip_filter |= plugins.left_out_before(last) if last else plugins.left_out_of_filter
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
            self.unsettled = Unsettled(self.plugins, self._away)

    async def _pre_filter_again(self, unsettled: Unsettled, attempt: Attempt) -> PreFilterOutcome:
        outcome = await run_pre_filters(unsettled.pre_filter, attempt)
        if not outcome.status.ok or outcome.node_names is not None:
            raise StartOverError
        attempt.state.skip_filter |= self._skip_filter
        return outcome

    def refreshed(self, attempt: Attempt) -> bool:
        """Ask about the dirty rows if nothing has to be awaited for that; whether none is dirty then."""
        verdicts, dirty = self._verdicts, self._dirty
        if verdicts is None or dirty.every:
            return False
        try:
            if dirty.many is not None:
                return self._refreshed_many(verdicts, attempt, dirty.many)
            if not dirty.few:
                return True
            unasked = verdicts.ask_each(attempt, dirty.few)
        except OverBudgetError:
            raise
        except Exception as error:
            raise StartOverError from error
        if unasked is None:
            return False
        self._moved.add(dirty.few - unasked, len(attempt.nodes))
        dirty.few = unasked
        return not unasked

    def _refreshed_many(self, verdicts: Verdicts, attempt: Attempt, rows: Rows) -> bool:
        unasked = verdicts.ask_many(attempt, rows)
        if unasked is None:
            return False
        n = len(attempt.nodes)
        if not unasked.size:
            self._moved.take(self._dirty, n)
            return True
        answered = np.ones(rows.size, dtype=bool)
        answered[rows.searchsorted(unasked)] = False
        self._moved.add_many(rows[answered], n)
        self._dirty.clear()
        self._dirty.add_many(unasked, n)
        return False

    async def refresh(self, attempt: Attempt, candidates: Mask | None, point: int) -> Verdicts:
        """Ask Filter plugins about the dirty rows; if all are, about the candidates alone (None: all rows).

        To be called where `refreshed` could not do it. Shapes: candidates bool (n,).
        """
        self.waited = True
        try:
            if self._verdicts is None:
                await self._ask_all(attempt, candidates, point)
            elif self._dirty.every:
                await self._verdicts.ask_all_again(attempt, point)
                self._moved.take(self._dirty, len(attempt.nodes))
            elif not await self._refreshed_with_others(self._verdicts, attempt, point):
                await self._verdicts.ask_some(attempt, self._dirty.rows(), point)
                self._moved.take(self._dirty, len(attempt.nodes))
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        return self.verdicts

    async def _refreshed_with_others(self, verdicts: Verdicts, attempt: Attempt, point: int) -> bool:
        """Ask other processes about the rows that `refreshed` has left dirty; whether none is then."""
        if not verdicts.outside:
            return False
        await verdicts.bring(attempt, self._dirty.rows(), point)
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
        if not self.scored or self.unsettled is not None:
            return False
        state.skip_score = self._skip_score
        return True

    async def pre_score(self, attempt: Attempt, feasible: Mask) -> None:
        """Run the phase, of plugins whose part in it is not known yet. Shapes: feasible bool (n,)."""
        state = attempt.state
        if not self.scored:
            await run_pre_scores(self.plugins.pre_score, attempt, feasible, self._written)
            state.skip_score |= self.plugins.left_out_of_score
            self._skip_score = state.skip_score - self._away
        elif self.unsettled is not None:
            await run_pre_scores(self.unsettled.pre_score, attempt, feasible)
            state.skip_score |= self._skip_score

    def refreshed_scores(self, attempt: Attempt) -> bool:
        """Score the rows that became others if nothing has to be awaited; whether totals are there then."""
        scorers, moved = self._scorers, self._moved
        if scorers is None or moved.every or not self.known:
            return False
        try:
            if moved.many is not None:
                unscored = scorers.ask_many(attempt, moved.many, self.verdicts.fits)
                if unscored is None:
                    return False
                moved.clear()
                moved.add_many(unscored, len(attempt.nodes))
            elif moved.few:
                unasked = scorers.ask_each(attempt, moved.few, self.verdicts.fits)
                if unasked is None:
                    return False
                moved.few = unasked
        except OverBudgetError:
            raise
        except Exception as error:
            raise StartOverError from error
        return not moved and scorers.ranks.totals is not None

    async def refresh_scores(self, attempt: Attempt, feasible: Mask, point: int) -> Ranks:
        """Ask Score plugins about the rows that became others since they were asked, where the pod fits.

        Shapes: feasible bool (n,).
        """
        self.waited = True
        fits = self.verdicts.fits if self.kept else feasible
        try:
            if not self.scored:
                await self._score_all(attempt, fits, point)
            elif self._moved.every:
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
        """Score rows that became others, other processes first; whether totals are there then."""
        scorers = self._scorers
        if scorers is None or not (self._moved and scorers.outside):
            return False
        await scorers.bring(attempt, self._moved.rows(), point)
        return self.refreshed_scores(attempt)

    async def _score_all(self, attempt: Attempt, fits: Mask, point: int) -> None:
        settled = [weighed for weighed in self.plugins.score if weighed[0].name not in self._away]
        self._scorers = Scorers(settled, Ranks(fits.size, kept=self.kept, detailed=self._detailed))
        await self._scorers.ask_all(attempt, fits, point)
        self._moved.clear()
        self.scored, self.size_known = True, False

    async def _score_all_again(self, attempt: Attempt, point: int) -> None:
        assert self._scorers is not None, "what was scored has been asked about"
        await self._scorers.ask_all_again(attempt, self.verdicts.fits, point)
        self._moved.clear()

    async def _score_moved(self, attempt: Attempt, fits: Mask, point: int) -> None:
        assert self._scorers is not None, "what was scored has been asked about"
        await self._scorers.ask_some(attempt, self._moved.rows(), fits, point)
        self._moved.clear()

    def check(self, attempt: Attempt) -> None:
        """Make sure that what plugins in other processes answered in this cycle goes with what is known."""
        waited = self.waited or self.unsettled is not None
        if waited and self.known and self._validity is not None and not self._validity.holds(attempt):
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
