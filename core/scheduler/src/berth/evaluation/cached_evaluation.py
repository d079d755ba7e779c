"""Cached filter results and scores of one class of equal pods, by row of the snapshot.

A row is dirty if it changed since the plugins were last run on it. All rows of a new entry are dirty; after
the first cycle only rows that changed are. A change of the node set, or of a plugin's cache key, invalidates
the whole entry: all rows are dirty again.

    begin --> pre_filter --> refresh --> (uncacheable filters, sampling, extenders)
                                |
                                +--> pre_score --> refresh_scores --> total scores --> the highest --> end

Plugins without a cache key for the pod are *uncacheable*: they are run on all nodes in every cycle, and their
results are merged with the cached ones. Source: docs/decisions/0008-equal-pods.md.
"""

from typing import Any

import numpy as np

from berth.evaluation.cache_invalidation import CacheInvalidation
from berth.evaluation.dirty_rows import DirtyRows
from berth.evaluation.filter_results import FilterResults
from berth.evaluation.node_plugins import NodePlugins, UncacheablePlugins
from berth.evaluation.pre_filtering import PreFilterOutcome, run_pre_filters
from berth.evaluation.score_results import ScoreResults
from berth.evaluation.scoring import run_pre_scores
from berth.evaluation.state_writes import StateWrites
from berth.evaluation.total_scores import TotalScores
from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import OverBudgetError
from berth.framework.cycle_state import CycleState
from berth.snapshot.columns import Mask, Rows

MAX_REASONS = 4096
"""Max rejection reasons of one class beyond one for each node; an entry with more is cleared."""

ALL_CACHEABLE: frozenset[str] = frozenset()


class StartOverError(Exception):
    """The entry cannot be refreshed: the cycle has to start over, in a new state, with all rows dirty."""


class CachedEvaluation:
    """Results of all cacheable plugins; an entry that is `kept` serves further pods of the class.

    Every method that runs plugins raises PluginError where one fails, and StartOverError where it failed on
    some rows of a known class: it is then run once more on all rows, as for a class that is not known.
    """

    def __init__(self, plugins: NodePlugins, *, kept: bool = False, detailed: bool = False) -> None:
        self.plugins = plugins
        self.kept = kept
        self.asked_in = 0
        """The number of the last cycle that looked the class up."""
        self._detailed = detailed
        self.waited = False
        """Whether anything was awaited since the cycle began; sidecars may have changed meanwhile."""
        self.clear()

    def clear(self) -> None:
        """Drop all results: all rows are dirty."""
        self.known = False
        """Whether this cycle uses results of an earlier one."""
        self.scored = False
        self.size_known = False
        """Whether `size_bytes` is unchanged since it was last read."""
        self._uncacheable_names = ALL_CACHEABLE
        self._state_writes: StateWrites | None = {} if self.kept else None
        self._values: dict[Any, Any] = {}
        self._skip_filter = self._skip_score = ALL_CACHEABLE
        self._invalidation: CacheInvalidation | None = None
        self.uncacheable: UncacheablePlugins | None = None
        """The plugins to be run on all nodes in every cycle, None if there are none."""
        self._filter_results: FilterResults | None = None
        self._score_results: ScoreResults | None = None
        self._dirty = DirtyRows()
        self._moved = DirtyRows()
        """The rows that were filtered anew and are still to be scored."""

    @property
    def filter_results(self) -> FilterResults:
        """The filter results of the cacheable plugins."""
        assert self._filter_results is not None, "refresh comes first"
        return self._filter_results

    @property
    def total_scores(self) -> TotalScores:
        """The scores of the cacheable plugins."""
        assert self._score_results is not None, "refresh_scores comes first"
        return self._score_results.total_scores

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        total_scores = 0 if self._score_results is None else self._score_results.total_scores.size_bytes
        return total_scores + (0 if self._filter_results is None else self._filter_results.size_bytes)

    def begin(self, attempt: Attempt) -> None:
        """Begin a cycle: find the dirty rows, and copy the plugins' cycle state of the first cycle."""
        self.waited = False
        if self.known and not self._follow(attempt):
            self.clear()
        if self._invalidation is None:
            if self.kept:
                self._invalidation = CacheInvalidation(self.plugins, attempt.nodes)
            return
        attempt.state.take_over(self._values)
        if not self._invalidation.holds(attempt):
            raise StartOverError

    def _follow(self, attempt: Attempt) -> bool:
        assert self._invalidation is not None, "a known class has its invalidation"
        if not self._invalidation.follow(attempt, self._dirty):
            return False
        return len(self.filter_results.reasons.statuses) <= len(attempt.nodes) + MAX_REASONS

    def reuse_pre_filter(self, state: CycleState) -> bool:
        """Set the state's skip set as PreFilter left it; False where some plugin still has to run."""
        if not self.known or self.uncacheable is not None:
            return False
        state.skip_filter = self._skip_filter
        return True

    async def pre_filter(self, attempt: Attempt) -> PreFilterOutcome:
        """Run PreFilter; for a known class, of the uncacheable plugins alone."""
        if self.uncacheable is not None:
            outcome = await self._pre_filter_again(self.uncacheable, attempt)
        else:
            plugins = self.plugins
            outcome = await run_pre_filters(plugins.pre_filter, attempt, self._state_writes)
            last = outcome.ended_by
            attempt.state.skip_filter |= plugins.left_out_before(last) if last else plugins.left_out_of_filter
            if not outcome.status.ok or outcome.node_names is not None:
                self.kept = False
            elif self.kept and self._invalidation is not None:
                self._settle(self._invalidation, attempt)
        return outcome

    def _settle(self, invalidation: CacheInvalidation, attempt: Attempt) -> None:
        invalidation.settle(attempt)
        self._uncacheable_names = invalidation.uncacheable_names
        self._skip_filter = attempt.state.skip_filter - self._uncacheable_names
        if self._uncacheable_names:
            self.uncacheable = UncacheablePlugins(self.plugins, self._uncacheable_names)

    async def _pre_filter_again(self, uncacheable: UncacheablePlugins, attempt: Attempt) -> PreFilterOutcome:
        outcome = await run_pre_filters(uncacheable.pre_filter, attempt)
        if not outcome.status.ok or outcome.node_names is not None:
            raise StartOverError
        attempt.state.skip_filter |= self._skip_filter
        return outcome

    def try_refresh(self, attempt: Attempt) -> bool:
        """Filter the dirty rows unless that needs an await; True where no row is dirty afterwards."""
        filter_results, dirty = self._filter_results, self._dirty
        if filter_results is None or dirty.every:
            return False
        try:
            if dirty.many is not None:
                return self._try_refresh_many(filter_results, attempt, dirty.many)
            if not dirty.few:
                return True
            unasked = filter_results.ask_each(attempt, dirty.few)
        except OverBudgetError:
            raise
        except Exception as error:
            raise StartOverError from error
        if unasked is None:
            return False
        self._moved.add(dirty.few - unasked, len(attempt.nodes))
        dirty.few = unasked
        return not unasked

    def _try_refresh_many(self, filter_results: FilterResults, attempt: Attempt, rows: Rows) -> bool:
        unasked = filter_results.ask_many(attempt, rows)
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

    async def refresh(self, attempt: Attempt, candidates: Mask | None, point: int) -> FilterResults:
        """Run Filter plugins on the dirty rows; where all are, on the candidates alone (None: all rows).

        To be called where `try_refresh` returned False. Shapes: candidates bool (n,).
        """
        self.waited = True
        try:
            if self._filter_results is None:
                await self._ask_all(attempt, candidates, point)
            elif self._dirty.every:
                await self._filter_results.ask_all_again(attempt, point)
                self._moved.take(self._dirty, len(attempt.nodes))
            elif not await self._refresh_sidecars_first(self._filter_results, attempt, point):
                await self._filter_results.ask_some(attempt, self._dirty.rows(), point)
                self._moved.take(self._dirty, len(attempt.nodes))
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        return self.filter_results

    async def _refresh_sidecars_first(
        self, filter_results: FilterResults, attempt: Attempt, point: int
    ) -> bool:
        """Have sidecars filter the rows that `try_refresh` left dirty; True where none is dirty then."""
        if not filter_results.sidecars:
            return False
        await filter_results.fetch(attempt, self._dirty.rows(), point)
        return self.try_refresh(attempt)

    def _start_over(self, error: Exception) -> None:
        if self.known or self._uncacheable_names:
            raise StartOverError from error

    async def _ask_all(self, attempt: Attempt, candidates: Mask | None, point: int) -> None:
        settled = [placed for placed in self.plugins.filters if placed[1].name not in self._uncacheable_names]
        filter_results = FilterResults(settled)
        if candidates is None or self.kept:
            candidates = np.ones(len(attempt.nodes), dtype=bool)
        await filter_results.ask_all(attempt, candidates, point, kept=self.kept)
        self._filter_results = filter_results

    def reuse_pre_score(self, state: CycleState) -> bool:
        """Set the state's skip set as PreScore left it; False where some plugin still has to run."""
        if not self.scored or self.uncacheable is not None:
            return False
        state.skip_score = self._skip_score
        return True

    async def pre_score(self, attempt: Attempt, feasible: Mask) -> None:
        """Run PreScore; for a known class, of the uncacheable plugins alone. Shapes: feasible bool (n,)."""
        state = attempt.state
        if not self.scored:
            await run_pre_scores(self.plugins.pre_score, attempt, feasible, self._state_writes)
            state.skip_score |= self.plugins.left_out_of_score
            self._skip_score = state.skip_score - self._uncacheable_names
        elif self.uncacheable is not None:
            await run_pre_scores(self.uncacheable.pre_score, attempt, feasible)
            state.skip_score |= self._skip_score

    def try_refresh_scores(self, attempt: Attempt) -> bool:
        """Score the changed rows unless that needs an await; True where totals are complete then."""
        score_results, moved = self._score_results, self._moved
        if score_results is None or moved.every or not self.known:
            return False
        try:
            if moved.many is not None:
                unscored = score_results.ask_many(attempt, moved.many, self.filter_results.fits)
                if unscored is None:
                    return False
                moved.clear()
                moved.add_many(unscored, len(attempt.nodes))
            elif moved.few:
                unasked = score_results.ask_each(attempt, moved.few, self.filter_results.fits)
                if unasked is None:
                    return False
                moved.few = unasked
        except OverBudgetError:
            raise
        except Exception as error:
            raise StartOverError from error
        return not moved and score_results.total_scores.totals is not None

    async def refresh_scores(self, attempt: Attempt, feasible: Mask, point: int) -> TotalScores:
        """Run Score plugins on the changed rows where the pod fits. Shapes: feasible bool (n,)."""
        self.waited = True
        fits = self.filter_results.fits if self.kept else feasible
        try:
            if not self.scored:
                await self._score_all(attempt, fits, point)
            elif self._moved.every:
                await self._score_all_again(attempt, point)
            elif not await self._rescore_sidecars_first(attempt, point) and self._moved:
                await self._score_moved(attempt, fits, point)
            self.total_scores.add_up(attempt.state, attempt.pod, fits)
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        return self.total_scores

    async def _rescore_sidecars_first(self, attempt: Attempt, point: int) -> bool:
        """Have sidecars score the changed rows, then the others; True where totals are complete then."""
        score_results = self._score_results
        if score_results is None or not (self._moved and score_results.sidecars):
            return False
        await score_results.fetch(attempt, self._moved.rows(), point)
        return self.try_refresh_scores(attempt)

    async def _score_all(self, attempt: Attempt, fits: Mask, point: int) -> None:
        settled = [
            weighed for weighed in self.plugins.score if weighed[0].name not in self._uncacheable_names
        ]
        self._score_results = ScoreResults(
            settled, TotalScores(fits.size, kept=self.kept, detailed=self._detailed)
        )
        await self._score_results.ask_all(attempt, fits, point)
        self._moved.clear()
        self.scored, self.size_known = True, False

    async def _score_all_again(self, attempt: Attempt, point: int) -> None:
        assert self._score_results is not None, "what was scored has been asked about"
        await self._score_results.ask_all_again(attempt, self.filter_results.fits, point)
        self._moved.clear()

    async def _score_moved(self, attempt: Attempt, fits: Mask, point: int) -> None:
        assert self._score_results is not None, "what was scored has been asked about"
        await self._score_results.ask_some(attempt, self._moved.rows(), fits, point)
        self._moved.clear()

    def check(self, attempt: Attempt) -> None:
        """Check that no sidecar changed its cache key during the cycle. Raises: StartOverError."""
        waited = self.waited or self.uncacheable is not None
        if waited and self.known and self._invalidation is not None and not self._invalidation.holds(attempt):
            raise StartOverError

    def end(self, attempt: Attempt) -> None:
        """End a cycle that evaluated all nodes: keep the results for further pods of the class."""
        if self.known and self._state_writes is None:
            return
        if not self.kept or self._filter_results is None or self._invalidation is None:
            self.kept = False
            return
        if not self.known and not self._invalidation.confirm(attempt):
            self.clear()
            return
        self.known = True
        for name, values in (self._state_writes or {}).items():
            if name not in self._uncacheable_names:
                self._values |= values
        if self.scored:
            self._state_writes = None
