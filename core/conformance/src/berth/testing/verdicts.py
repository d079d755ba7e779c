"""One plugin's answers, asked the way a cycle asks, in a form that reads well in assertions."""

from collections.abc import Iterable

import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    FilterPlugin,
    NormalizeScorePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from berth.framework.status import SUCCESS, Status
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.snapshot.snapshot import Snapshot
from berth.testing.clusters import table


def verdicts(plugin: FilterPlugin, pod: Pod, nodes: Snapshot) -> dict[str, Status]:
    """The plugin's status for each node, of an in-process plugin's PreFilter and Filter.

    Nodes that PreFilter leaves out are absent.
    """
    state = CycleState()
    before = pre_filtered(plugin, state, pod, nodes)
    if before.status.skip:
        return dict.fromkeys(nodes.names, SUCCESS)
    if not before.status.ok:
        return dict.fromkeys(nodes.names, before.status)
    codes = plugin.filter(state, pod, nodes)
    assert isinstance(codes, np.ndarray), "an in-process plugin answers at once"
    assert codes.shape == (len(nodes),), "one code for each node"
    return {
        name: plugin.filter_status(state, int(code)) if code else SUCCESS
        for name, code in zip(nodes.names, codes, strict=True)
        if before.node_names is None or name in before.node_names
    }


def pre_filtered(plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
    """The plugin's PreFilter answer, success where it has none."""
    if not isinstance(plugin, PreFilterPlugin):
        return PreFilterResult()
    result = plugin.pre_filter(state, pod, nodes)
    assert isinstance(result, PreFilterResult), "an in-process plugin answers at once"
    return result


def feasible(plugin: FilterPlugin, pod: Pod, nodes: Iterable[Node], placed: Iterable[Pod] = ()) -> list[str]:
    """The names of the nodes that the plugin lets pass, in order."""
    return [name for name, status in verdicts(plugin, pod, table(nodes, placed)).items() if status.ok]


def reasons(
    plugin: FilterPlugin, pod: Pod, nodes: Iterable[Node], placed: Iterable[Pod] = ()
) -> dict[str, tuple[str, ...]]:
    """The reasons of each node that the plugin turns down."""
    found = verdicts(plugin, pod, table(nodes, placed))
    return {name: status.reasons for name, status in found.items() if not status.ok}


def raw_scores(
    plugin: ScorePlugin, pod: Pod, nodes: Snapshot, state: CycleState | None = None
) -> Scores | None:
    """The plugin's scores before normalising, all nodes being feasible; None where it does not score."""
    return _scored(plugin, CycleState() if state is None else state, pod, nodes)


def scores(
    plugin: ScorePlugin, pod: Pod, nodes: Iterable[Node], placed: Iterable[Pod] = ()
) -> dict[str, int] | None:
    """The plugin's final score of each node, all nodes being feasible; None where it does not score."""
    cluster, state = table(nodes, placed), CycleState()
    found = _scored(plugin, state, pod, cluster)
    if found is None:
        return None
    if isinstance(plugin, NormalizeScorePlugin):
        found = plugin.normalize_score(state, pod, found)
    return dict(zip(cluster.names, found.tolist(), strict=True))


def _scored(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores | None:
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod, nodes, np.ones(len(nodes), dtype=bool))
        assert isinstance(status, Status), "an in-process plugin answers at once"
        if status.skip:
            return None
        assert status.ok, status.message
    raw = plugin.score(state, pod, nodes)
    assert isinstance(raw, np.ndarray), "an in-process plugin answers at once"
    return raw
