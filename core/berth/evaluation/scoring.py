"""Running PreScore, Score and NormalizeScore over the feasible nodes.

Source: spec/core.md 4.10; spec/plugins.md 0.4, 1.5.
"""

from collections.abc import Container, Sequence
from inspect import isawaitable

import numpy as np

from berth.evaluation.filtering import LET_OTHERS_RUN, drop_unread
from berth.evaluation.kept import Kept
from berth.framework.attempt import Attempt
from berth.framework.cycle_state import CycleState
from berth.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    MaybeAwaitable,
    NormalizeScorePlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from berth.framework.node_scores import NodeScores, PluginScores
from berth.framework.status import PluginError, Status
from berth.objects.pod import Pod
from berth.snapshot.columns import Mask, rows_where


async def run_pre_scores(
    plugins: Sequence[PreScorePlugin], attempt: Attempt, feasible: Mask, kept: Kept | None = None
) -> None:
    """Run the phase and leave the set of plugins that do not score in the state.

    Raises: PluginError with upstream's text where a plugin fails.
    """
    skipped: set[str] = set()
    record, meter = attempt.record, attempt.meter
    point = record.begin("PreScore")
    for plugin in plugins:
        mark = record.begin(plugin.name, point)
        try:
            before = len(attempt.state)
            answer = plugin.pre_score(attempt.state, attempt.pod, attempt.nodes, feasible)
            status = answer if isinstance(answer, Status) else await answer
            if kept is not None:
                kept.note_values(plugin.name, attempt.state, before)
        except Exception as error:
            raise PluginError(f'running PreScore plugin "{plugin.name}": {error}') from error
        record.end(mark, status)
        if meter.worked(plugin.name):
            await meter.breathe()
        if status.skip:
            skipped.add(plugin.name)
        elif not status.ok:
            raise PluginError(f'running PreScore plugin "{plugin.name}": {status.message}')
    attempt.state.skip_score = frozenset(skipped)
    record.end(point)


async def run_scores(
    plugins: Sequence[tuple[ScorePlugin, int]], attempt: Attempt, feasible: Mask, kept: Kept | None = None
) -> NodeScores:
    """Score the feasible nodes with every plugin that did not skip.

    Raises: PluginError with upstream's text where a plugin fails or answers out of range.
    """
    rows = rows_where(feasible)
    scores = NodeScores(rows, np.zeros(rows.size, dtype=np.int64))
    point = attempt.record.begin("Score")
    try:
        await score_within(plugins, attempt, scores, point=point, kept=kept)
    finally:
        attempt.record.end(point)
    if kept is not None:
        kept.scored = True
    return scores


async def score_within(
    plugins: Sequence[tuple[ScorePlugin, int]],
    attempt: Attempt,
    scores: NodeScores,
    *,
    point: int,
    kept: Kept | None = None,
) -> None:
    """The same for a phase that has begun; everything is added to `scores`."""
    state, record, rows = attempt.state, attempt.record, scores.rows
    active = [(p, w) for p, w in plugins if p.name not in state.skip_score]
    asked: dict[str, MaybeAwaitable[Scores]] = {}
    try:
        asked = {plugin.name: _ask(plugin, attempt) for plugin, _ in active if not plugin.in_process}
        if any(not isinstance(answer, np.ndarray) for answer in asked.values()):
            await LET_OTHERS_RUN
        for i, (plugin, weight) in enumerate(active):
            mark = record.begin(plugin.name, point)
            if not plugin.in_process:
                asked |= _asked_here(active[i + 1 :], asked, attempt)
            answer = asked.pop(plugin.name, None)
            every = await _scores(plugin, _ask(plugin, attempt) if answer is None else answer)
            if kept is not None:
                kept.raw[plugin.name] = every
            raw = every if rows.size == len(attempt.nodes) else every[rows]
            final = final_scores(plugin, state, attempt.pod, raw)
            scores.totals += final * weight if weight != 1 else final
            scores.parts.append(PluginScores(plugin.name, weight, raw, final))
            record.end(mark)
            if attempt.meter.worked(plugin.name):
                await attempt.meter.breathe()
    finally:
        drop_unread(asked.values())


async def scores_on(plugin: ScorePlugin, attempt: Attempt) -> Scores:
    """The plugin's raw scores of the attempt's nodes.

    Raises: PluginError with upstream's text where the plugin fails.
    """
    return await _scores(plugin, _ask(plugin, attempt))


def _asked_here(
    later: Sequence[tuple[ScorePlugin, int]], asked: Container[str], attempt: Attempt
) -> dict[str, MaybeAwaitable[Scores]]:
    """What the plugins of this process say whose turn is later, found while another process is at work."""
    return {p.name: _ask(p, attempt) for p, _ in later if p.in_process and p.name not in asked}


def _ask(plugin: ScorePlugin, attempt: Attempt) -> MaybeAwaitable[Scores]:
    try:
        return plugin.score(attempt.state, attempt.pod, attempt.nodes)
    except Exception as error:
        raise _score_error(plugin, error) from error


async def _scores(plugin: ScorePlugin, answer: MaybeAwaitable[Scores]) -> Scores:
    if isinstance(answer, np.ndarray) or not isawaitable(answer):
        return answer
    try:
        return await answer
    except Exception as error:
        raise _score_error(plugin, error) from error


def _score_error(plugin: ScorePlugin, error: Exception) -> PluginError:
    return PluginError(f'running Score plugins: plugin "{plugin.name}" failed with: {error}')


def final_scores(plugin: ScorePlugin, state: CycleState, pod: Pod, raw: Scores) -> Scores:
    """The plugin's scores, normalised if it does that, and checked if it is to be checked.

    Shapes: raw and result int64 (k,). Raises: PluginError with upstream's text.
    """
    final = raw
    if isinstance(plugin, NormalizeScorePlugin):
        try:
            final = plugin.normalize_score(state, pod, raw)
        except Exception as error:
            raise PluginError(
                f'running Normalize on Score plugins: plugin "{plugin.name}" failed with: {error}'
            ) from error
    if not plugin.in_process:
        check_range(plugin.name, final)
    return final


def check_range(name: str, scores: Scores) -> None:
    """Refuse scores that are not in 0 to 100.

    Raises: PluginError with upstream's text.
    """
    outside = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
    if outside.size:
        raise PluginError(
            f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score '
            f"{int(outside[0])}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] "
            "after normalizing"
        )
