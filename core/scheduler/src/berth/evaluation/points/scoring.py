"""Runs PreScore and Score plugins, and normalizes scores to 0 to 100.

Source: pkg/scheduler/framework/runtime/framework.go RunPreScorePlugins, RunScorePlugins (Kubernetes v1.36).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from berth.evaluation.points.plugin_calls import ConcurrentPluginCalls
from berth.evaluation.points.state_writes import StateWrites, record_writes
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NormalizeScorePlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from berth.framework.status import PluginError, Status
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Mask

Weighed: TypeAlias = tuple[ScorePlugin, int]
"""A Score plugin and its weight."""


async def run_pre_scores(
    plugins: Sequence[PreScorePlugin],
    attempt: Attempt,
    feasible: Mask,
    state_writes: StateWrites | None = None,
) -> None:
    """Run PreScore; the plugins that return Skip are in the state's `skip_score` afterwards.

    What each plugin writes into the state is recorded in `state_writes`.
    Raises: PluginError with upstream's text where a plugin fails.
    """
    skipped: set[str] = set()
    record, meter, state = attempt.record, attempt.meter, attempt.state
    point = record.begin("PreScore")
    for plugin in plugins:
        name, before = plugin.name, len(state)
        mark = record.begin(name, point)
        try:
            answer = plugin.pre_score(state, attempt.pod, attempt.nodes, feasible)
            status = answer if isinstance(answer, Status) else await answer
        except OverBudgetError:
            raise
        except Exception as error:
            raise PluginError(f'running PreScore plugin "{name}": {error}') from error
        if state_writes is not None:
            record_writes(state_writes, name, state, before)
        record.end(mark, status)
        if meter.worked(name):
            await meter.breathe()
        if status.skip:
            skipped.add(name)
        elif not status.ok:
            raise PluginError(f'running PreScore plugin "{name}": {status.message}')
    state.skip_score = frozenset(skipped)
    record.end(point)


async def ask_scores(
    plugins: Sequence[Weighed],
    attempt: Attempt,
    point: int,
    take: Callable[[ScorePlugin, int, Scores], None],
) -> None:
    """Run the plugins in order on the attempt's nodes; `take` receives each one's weight and raw scores.

    Raises: PluginError with upstream's text where a plugin fails.
    """
    state, record, meter = attempt.state, attempt.record, attempt.meter
    pod, nodes = attempt.pod, attempt.nodes
    active = [(p, w) for p, w in plugins if p.name not in state.skip_score]
    async with ConcurrentPluginCalls(
        [plugin for plugin, _ in active], lambda plugin: plugin.score(state, pod, nodes), score_error
    ) as answers:
        for i, (plugin, weight) in enumerate(active):
            name = plugin.name
            mark = record.begin(name, point)
            raw = answers.of(i)
            take(plugin, weight, raw if isinstance(raw, np.ndarray) else await answers.read(i, raw))
            record.end(mark)
            if meter.worked(name):
                await meter.breathe()


def score_error(plugin: ScorePlugin, error: Exception) -> PluginError:
    """The error of a cycle in which a Score plugin failed, in upstream's text."""
    return PluginError(f'running Score plugins: plugin "{plugin.name}" failed with: {error}')


def final_scores(plugin: ScorePlugin, state: CycleState, pod: Pod, raw: Scores) -> Scores:
    """The plugin's normalized scores; a sidecar's are checked to be in range.

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


def check_range(name: str, every: Scores, fits: Mask | None = None) -> None:
    """Refuse scores of rows that fit (None: all) that are not in 0 to 100.

    Shapes: every int64 (n,); fits bool (n,). Raises: PluginError with upstream's text.
    """
    if not every.size or (every.min() >= MIN_NODE_SCORE and every.max() <= MAX_NODE_SCORE):
        return
    scores = every if fits is None else every[fits]
    outside = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
    if outside.size:
        raise _out_of_range(name, int(outside[0]))


def check_score(name: str, score: int) -> None:
    """The same of one score. Raises: PluginError."""
    if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
        raise _out_of_range(name, score)


def _out_of_range(name: str, score: int) -> PluginError:
    return PluginError(
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score '
        f"{score}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] "
        "after normalizing"
    )
