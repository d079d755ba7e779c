"""Runs Filter plugins with nominated pods added to their nodes.

Source: pkg/scheduler/framework/runtime/framework.go RunFilterPluginsWithNominatedPods (Kubernetes v1.36).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from berth.evaluation.nominated_rows import NominatedRows, with_pods
from berth.evaluation.points.filtering import filter_one, run_filters
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import FilterPlugin, PreFilterExtensions
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, PluginError, Status
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_info import PodInfo


async def rejected_with_nominated(
    framework: Framework, attempt: Attempt, nominated: NominatedRows, diagnosis: Diagnosis
) -> Rows:
    """The rows that the pod does not fit on with their nominated pods added; reasons go into the diagnosis.

    Shapes: result intp (k,). Raises: PluginError where a plugin fails.
    """
    skipped = attempt.state.skip_filter
    if all(p.follows_side_by_side or p.name in skipped for p in framework.extensions):
        return await _side_by_side(framework, attempt, nominated, diagnosis)
    left = []
    for row in nominated.rows.tolist():
        status = await filter_with_nominated(
            framework.plugins.filter, framework.extensions, attempt, row, nominated.pods[row]
        )
        if not status.ok:
            diagnosis.single[row] = status
            diagnosis.blame(status)
            left.append(row)
    return np.array(left, dtype=np.intp)


async def _side_by_side(
    framework: Framework, attempt: Attempt, nominated: NominatedRows, diagnosis: Diagnosis
) -> Rows:
    """The same for all rows at once, each simulated independently."""
    rows = nominated.rows
    crowded = attempt.on(with_pods(attempt.nodes, nominated), attempt.state.clone())
    following = [plugin for plugin in framework.extensions if plugin.name not in attempt.state.skip_filter]
    if following:
        coming = [(i, info) for i, row in enumerate(rows.tolist()) for info in nominated.pods[row]]
        follow_pods(following, crowded, coming, 1)
    why_not = Diagnosis(crowded.nodes.names)
    fits = await run_filters(framework.plugins.filter, crowded, np.ones(rows.size, dtype=bool), why_not)
    for rejections in why_not.rejections:
        diagnosis.record(replace(rejections, rows=rows[rejections.rows]))
    turned_down: Rows = rows[~fits]
    return turned_down


async def filter_with_nominated(
    plugins: Sequence[FilterPlugin],
    extensions: Sequence[PreFilterExtensions],
    attempt: Attempt,
    row: int,
    nominated: Sequence[PodInfo],
) -> Status:
    """One node's status with the nominated pods added to it.

    Raises: PluginError where a plugin fails.
    """
    nodes = attempt.nodes
    state = attempt.state.clone()
    table = nodes.what_if(nodes.names[row], add=nominated)
    simulated = attempt.on(table, state)
    following = [plugin for plugin in extensions if plugin.name not in state.skip_filter]
    follow_pods(following, simulated, [(0, other) for other in nominated], 1)
    return await filter_one(plugins, simulated)


def follow_pods(
    plugins: Iterable[PreFilterExtensions], attempt: Attempt, pods: Sequence[tuple[int, PodInfo]], sign: int
) -> None:
    """Run PreFilterExtensions for pods that a simulation adds (sign 1) to the table's rows, or removes (-1).

    The table has one row unless every plugin takes several nodes at once (`follows_side_by_side`).
    Raises: PluginError where a plugin fails.
    """
    for plugin in plugins:
        text = f'running {"AddPod" if sign > 0 else "RemovePod"} on PreFilter plugin "{plugin.name}"'
        try:
            status = _follow(plugin, attempt, pods, sign)
        except Exception as error:
            raise PluginError(f"{text}: {error}") from error
        if not status.ok:
            raise PluginError(f"{text}: {status.message}")


def _follow(
    plugin: PreFilterExtensions, attempt: Attempt, pods: Sequence[tuple[int, PodInfo]], sign: int
) -> Status:
    state, pod, table = attempt.state, attempt.pod, attempt.nodes
    if plugin.follows_side_by_side:
        plugin.follow_pods(state, pod, pods, table, sign)
        return SUCCESS
    follow = plugin.add_pod if sign > 0 else plugin.remove_pod
    statuses = (follow(state, pod, info, table) for _, info in pods)
    return next((status for status in statuses if not status.ok), SUCCESS)
