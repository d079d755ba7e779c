"""Runs PlacementGenerate, PlacementFeasible and PlacementScore plugins for a pod group.

Their durations go into the CycleRecord in the state.

Source: pkg/scheduler/framework/runtime/framework.go RunPlacementGeneratePlugins, RunPlacementScorePlugins
(Kubernetes v1.36).
"""

from collections.abc import Sequence
from inspect import isawaitable

import numpy as np

from berth.evaluation.points.scoring import check_range
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    Placement,
    PlacementProgress,
    PlacementsResult,
    Plugin,
    ProposedPlacement,
    Scores,
)
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed, unschedulable
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey, TreeKey
from berth.snapshot.snapshot import Snapshot

NO_PLACEMENTS = unschedulable("no feasible placements found")


async def run_generate(
    framework: Framework, state: CycleState, group: AnyKey, nodes: Snapshot, within: Rows | None = None
) -> PlacementsResult:
    """The placements to try, parts of these rows; without a PlacementGenerate plugin, one of all of them.

    A plugin of another process is asked about pod groups alone.
    """
    record = state.read(CycleRecord)
    point = record.begin("PlacementGenerate")
    result = await _generated(framework, state, group, nodes, within)
    record.end(point, result.status)
    return result


async def _generated(
    framework: Framework, state: CycleState, group: AnyKey, nodes: Snapshot, within: Rows | None
) -> PlacementsResult:
    parent = Placement("", np.arange(len(nodes)) if within is None else within)
    plugins = framework.plugins.placement_generate
    if not plugins or not _knows(plugins[0], group):
        return PlacementsResult(placements=(parent,))
    plugin = plugins[0]
    try:
        answer = plugin.generate_placements(state, group, nodes, parent)
        result = await answer if isawaitable(answer) else answer
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this group's attempt
        return PlacementsResult(failed(error).from_plugin(plugin.name))
    if result.status.ok and not result.placements:
        return PlacementsResult(NO_PLACEMENTS)
    return result


async def run_placement_feasible(
    framework: Framework, state: CycleState, group: AnyKey, progress: PlacementProgress
) -> Status:
    """The plugins' joint status: an error takes precedence over a rejection, and that over Wait."""
    verdict = SUCCESS
    for plugin in framework.placement_feasible:
        if not (plugin.judges_groups() and _knows(plugin, group)):
            continue
        try:
            answer = plugin.placement_feasible(state, group, progress)
            status = (await answer if isawaitable(answer) else answer).from_plugin(plugin.name)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this group's attempt
            return failed(error).from_plugin(plugin.name)
        if status.code is Code.ERROR:
            return status
        if status.rejected or verdict.ok:
            verdict = status
    return verdict


async def run_placement_scores(
    framework: Framework,
    state: CycleState,
    group: AnyKey,
    nodes: Snapshot,
    proposed: Sequence[ProposedPlacement],
) -> Scores:
    """The weighted sum of the plugins' scores of each placement.

    Shapes: result int64 (k,). Raises: PluginError where a plugin fails or answers out of range.
    """
    totals: Scores = np.zeros(len(proposed), dtype=np.int64)
    record = state.read(CycleRecord)
    point = record.begin("PlacementScore")
    for plugin, weight in framework.plugins.placement_score:
        if not _knows(plugin, group):
            continue
        mark = record.begin(plugin.name, point)
        try:
            answer = plugin.score_placements(state, group, nodes, proposed)
            scores = await answer if isawaitable(answer) else answer
        except Exception as error:
            text = f'running PlacementScore plugins: plugin "{plugin.name}" failed with: {error}'
            raise PluginError(text) from error
        check_range(plugin.name, scores)
        totals += scores * weight
        record.end(mark)
    record.end(point)
    return totals


def _knows(plugin: Plugin, group: AnyKey) -> bool:
    """Whether the plugin is asked about that group: the protocol of sidecars has no CompositePodGroups."""
    return plugin.in_process or not isinstance(group, TreeKey)
