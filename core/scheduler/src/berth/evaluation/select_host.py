"""Scores the feasible nodes and selects one of those with the highest score, at random.

Source: pkg/scheduler/schedule_one.go prioritizeNodes, newSortedNodeScores (Kubernetes v1.36).
"""

import random
from array import array
from typing import NamedTuple

import numpy as np

from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.top_scores import highest_of
from berth.evaluation.find_nodes import Feasible
from berth.evaluation.points.extending import add_extender_scores
from berth.evaluation.points.scoring import ask_scores, final_scores
from berth.framework.attempts.attempt import Attempt
from berth.framework.interface import ScorePlugin, Scores
from berth.framework.node_scores import NodeScores, PluginScores
from berth.framework.runtime import Framework
from berth.snapshot.columns.growing import Rows, rows_where


class Host(NamedTuple):
    """The row of the chosen node, and its total if nodes were scored."""

    row: int
    score: int | None = None


async def select_host(
    framework: Framework,
    attempt: Attempt,
    evaluation: CachedEvaluation,
    feasible: Feasible,
    chance: random.Random,
) -> Host:
    """Choose one of the feasible nodes.

    Raises: PluginError where a plugin fails; StartOverError where the cached evaluation cannot be refreshed.
    """
    if feasible.count == 1 or not (framework.plugins.score or framework.extenders):
        evaluation.check(attempt)
        return _any(framework, attempt, feasible, chance)
    later = evaluation.pre_score(attempt, feasible.mask)
    if later is not None:
        await later
    point = attempt.record.begin("Score")
    try:
        later = evaluation.refresh_scores(attempt, feasible.mask, point)
        if later is not None:
            await later
        evaluation.check(attempt)
        found = None
        if not (_scores_beside(evaluation) or framework.extenders or framework.decision_observers):
            found = _highest(evaluation, feasible)
        if found is not None:
            best, among = found
            return Host(drawn(among, chance), best)
        scores = await _all_scores(evaluation, attempt, feasible, point)
    finally:
        attempt.record.end(point)
    if framework.extenders:
        await add_extender_scores(framework.extenders, attempt, scores)
    best, places = highest_of(scores.totals)
    row = int(scores.rows[drawn(places, chance)])
    for observer in framework.decision_observers:
        observer.on_node_chosen(attempt, row, scores)
    return Host(row, best)


def _highest(evaluation: CachedEvaluation, feasible: Feasible) -> "tuple[int, array[int] | Rows] | None":
    """The highest cached total and the feasible rows that have it; None where scores are to be added up."""
    if feasible.matches_cache:
        return evaluation.total_scores.best()
    return None if feasible.rows is None else evaluation.total_scores.best_among(feasible.rows)


def drawn(among: "array[int] | Rows", chance: random.Random) -> int:
    """One of them, drawn uniformly."""
    return int(among[0] if len(among) == 1 else among[chance.randrange(len(among))])


def _scores_beside(evaluation: CachedEvaluation) -> bool:
    """Whether some Score plugin is uncacheable."""
    return evaluation.uncacheable is not None and bool(evaluation.uncacheable.score)


def _any(framework: Framework, attempt: Attempt, feasible: Feasible, chance: random.Random) -> Host:
    rows = feasible.mask.nonzero()[0] if feasible.rows is None else feasible.rows
    row = int(rows[chance.randrange(rows.size)])
    for observer in framework.decision_observers:
        observer.on_node_chosen(attempt, row, NodeScores(rows, np.zeros(rows.size, dtype=np.int64)))
    return Host(row)


async def score_nodes(attempt: Attempt, evaluation: CachedEvaluation, feasible: Feasible) -> NodeScores:
    """The scores of all feasible nodes, by plugin where the evaluation is `detailed`.

    Raises: PluginError where a plugin fails or answers out of range; StartOverError.
    """
    later = evaluation.pre_score(attempt, feasible.mask)
    if later is not None:
        await later
    point = attempt.record.begin("Score")
    try:
        later = evaluation.refresh_scores(attempt, feasible.mask, point)
        if later is not None:
            await later
        return await _all_scores(evaluation, attempt, feasible, point)
    finally:
        attempt.record.end(point)


async def _all_scores(
    evaluation: CachedEvaluation, attempt: Attempt, feasible: Feasible, point: int
) -> NodeScores:
    rows = rows_where(feasible.mask) if feasible.rows is None else feasible.rows
    scores = evaluation.total_scores.on(rows, attempt.state, attempt.pod, whole=feasible.matches_cache)
    if evaluation.uncacheable is not None:

        def take(plugin: ScorePlugin, weight: int, every: Scores) -> None:
            raw = every if rows.size == len(attempt.nodes) else every[rows]
            final = final_scores(plugin, attempt.state, attempt.pod, raw)
            scores.totals += final if weight == 1 else final * weight
            scores.parts.append(PluginScores(plugin.name, weight, raw, final))

        await ask_scores(evaluation.uncacheable.score, attempt, point, take)
    return scores
