"""Cached filter results and scores of one class of equal pods, by row of the snapshot.

A row is dirty if it changed since the plugins were last run on it. All rows of a new entry are dirty; after
the first cycle only rows that changed are. A change of the node set, or of a plugin's cache key, invalidates
the whole entry: all rows are dirty again.

    begin --> pre_filter --> refresh_filters --> (uncacheable filters, sampling, extenders)
                                |
                                +--> pre_score --> refresh_scores --> total scores --> the highest --> end

Each of these steps is done at once where all that it needs is at hand; otherwise it returns what is to be
awaited.

Plugins without a cache key for the pod are *uncacheable*: they are run on all nodes in every cycle, and their
results are merged with the cached ones. Source: docs/decisions/0008-equal-pods.md.
"""

from collections.abc import Awaitable
from typing import Any

import numpy as np

from berth.evaluation.caching.cache_invalidation import CacheInvalidation
from berth.evaluation.caching.dirty_rows import DirtyRows
from berth.evaluation.caching.filter_results import FilterResults
from berth.evaluation.caching.node_plugins import NodePlugins, UncacheablePlugins
from berth.evaluation.caching.score_results import ScoreResults
from berth.evaluation.caching.total_scores import TotalScores
from berth.evaluation.points.pre_filtering import ALL_WELL, PreFilterOutcome, run_pre_filters
from berth.evaluation.points.scoring import run_pre_scores
from berth.evaluation.points.state_writes import StateWrites
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.interface import MaybeAwaitable
from berth.snapshot.columns.growing import Mask, Rows

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
        self._waited = False
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
        assert self._filter_results is not None, "refresh_filters comes first"
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
        self._waited = False
        if self.known and not self._follow(attempt):
            self.clear()
        if self._invalidation is None:
            if self.kept:
                self._invalidation = CacheInvalidation(self.plugins, attempt.nodes)
            return
        attempt.state.take_over(self._values)
        self._check_keys(attempt)

    def _follow(self, attempt: Attempt) -> bool:
        assert self._invalidation is not None, "a known class has its invalidation"
        if not self._invalidation.follow(attempt, self._dirty):
            return False
        return len(self.filter_results.reasons.statuses) <= len(attempt.nodes) + MAX_REASONS

    def pre_filter(self, attempt: Attempt) -> MaybeAwaitable[PreFilterOutcome]:
        """Run PreFilter; for a known class, of the uncacheable plugins alone, if there are any."""
        if self.uncacheable is not None:
            return self._pre_filter_again(self.uncacheable, attempt)
        if not self.known:
            return self._pre_filter_first(attempt)
        attempt.state.skip_filter = self._skip_filter
        return ALL_WELL

    async def _pre_filter_first(self, attempt: Attempt) -> PreFilterOutcome:
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
        """A rejection is the cycle's: all cached plugins let the class pass."""
        outcome = await run_pre_filters(uncacheable.pre_filter, attempt)
        if outcome.node_names is not None:
            raise StartOverError
        skipped = self._skip_filter
        if outcome.ended_by:
            skipped &= self.plugins.pre_filters_before(outcome.ended_by)
        attempt.state.skip_filter |= skipped
        return outcome

    def refresh_filters(
        self, attempt: Attempt, candidates: Mask | None, point: int
    ) -> Awaitable[None] | None:
        """Run Filter plugins on the dirty rows: now (None), or once the result is awaited.

        Of a class that is not kept only candidates are evaluated (None: all rows); of a kept one all dirty
        rows are, and the caller masks the result. Shapes: candidates bool (n,).
        """
        if self._filter_results is None:
            return self._awaited(self._first_filters(attempt, candidates, point))
        dirty = self._dirty
        try:
            later = self._filter_results.ask(attempt, dirty, point)
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        if later is not None:
            return self._awaited(self._finish_filters(later, attempt))
        self._moved.take(dirty, len(attempt.nodes))
        return None

    def fitting(self, within: Rows) -> Rows:
        """Those of the rows that the pod fits on, once Filter plugins were run on the dirty rows.

        Shapes: within intp (k,), result intp (m,), not to be written to.
        """
        results = self.filter_results
        before = results.size_bytes
        rows = results.fitting(within)
        self.size_known = self.size_known and results.size_bytes == before
        return rows

    async def _first_filters(self, attempt: Attempt, candidates: Mask | None, point: int) -> None:
        settled = [placed for placed in self.plugins.filters if placed[1].name not in self._uncacheable_names]
        filter_results = FilterResults(settled)
        if candidates is None or self.kept:
            candidates = np.ones(len(attempt.nodes), dtype=bool)
        await filter_results.begin(attempt, candidates, point, kept=self.kept)
        self._filter_results = filter_results

    async def _finish_filters(self, later: Awaitable[None], attempt: Attempt) -> None:
        await later
        self._moved.take(self._dirty, len(attempt.nodes))

    async def _awaited(self, later: Awaitable[None]) -> None:
        self._waited = True
        try:
            await later
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise

    def _start_over(self, error: Exception) -> None:
        if self.known or self._uncacheable_names:
            raise StartOverError from error

    def pre_score(self, attempt: Attempt, feasible: Mask) -> Awaitable[None] | None:
        """Run PreScore; for a known class, of the uncacheable plugins alone, if there are any.

        It is done now (None), or once the result is awaited. Shapes: feasible bool (n,).
        """
        if not self.scored or self.uncacheable is not None:
            return self._pre_score(attempt, feasible)
        attempt.state.skip_score = self._skip_score
        return None

    async def _pre_score(self, attempt: Attempt, feasible: Mask) -> None:
        state = attempt.state
        if not self.scored:
            await run_pre_scores(self.plugins.pre_score, attempt, feasible, self._state_writes)
            state.skip_score |= self.plugins.left_out_of_score
            self._skip_score = state.skip_score - self._uncacheable_names
        elif self.uncacheable is not None:
            await run_pre_scores(self.uncacheable.pre_score, attempt, feasible)
            state.skip_score |= self._skip_score

    def refresh_scores(self, attempt: Attempt, feasible: Mask, point: int) -> Awaitable[None] | None:
        """Run Score plugins on the changed rows where the pod fits: now (None), or once it is awaited.

        Shapes: feasible bool (n,).
        """
        fits = self.filter_results.fits if self.kept else feasible
        if self._score_results is None or not self.scored:
            return self._awaited(self._first_scores(attempt, fits, point))
        try:
            later = self._score_results.ask(attempt, self._moved, fits, point)
            if later is None:
                self._scored(attempt, fits)
        except OverBudgetError:
            raise
        except Exception as error:
            self._start_over(error)
            raise
        return None if later is None else self._awaited(self._finish_scores(later, attempt, fits))

    async def _first_scores(self, attempt: Attempt, fits: Mask, point: int) -> None:
        settled = [
            weighed for weighed in self.plugins.score if weighed[0].name not in self._uncacheable_names
        ]
        self._score_results = ScoreResults(
            settled, TotalScores(fits.size, kept=self.kept, detailed=self._detailed)
        )
        await self._score_results.begin(attempt, fits, point)
        self.scored, self.size_known = True, False
        self._scored(attempt, fits)

    async def _finish_scores(self, later: Awaitable[None], attempt: Attempt, fits: Mask) -> None:
        await later
        self._scored(attempt, fits)

    def _scored(self, attempt: Attempt, fits: Mask) -> None:
        self._moved.clear()
        total_scores = self.total_scores
        if total_scores.totals is None:
            total_scores.add_up(attempt.state, attempt.pod, fits)

    def check(self, attempt: Attempt) -> None:
        """Check that no sidecar changed its cache key during the cycle. Raises: StartOverError."""
        if self._waited or self.uncacheable is not None:
            self._check_keys(attempt)

    def _check_keys(self, attempt: Attempt) -> None:
        invalidation = self._invalidation
        if invalidation is not None and invalidation.remote_keys and not invalidation.holds(attempt):
            raise StartOverError

    def keys_may_change(self) -> None:
        """Note that the cycle awaits something else, during which sidecars may change their cache keys."""
        self._waited = True

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
