"""Sidecars in a dry run: sent the simulated evictions, and candidates only."""

import numpy as np

from berth.framework.interface import PreFilterResult, Reason
from berth.plugins.registry import IN_TREE
from tests.unit.preemption.kit import node, placed, preemptor, stage


class Keeper(IN_TREE["NodePorts"]):
    """Stands for a sidecar: turns down nodes on which a pod named `keep...` is."""

    in_process = False
    reasons = (Reason("another pod keeps the node"),)

    def __init__(self, *args):
        super().__init__(*args)
        self.asked = []

    def pre_filter(self, _state, _pod, _nodes):
        return PreFilterResult()

    async def filter(self, _state, _pod, nodes):
        self.asked.append(len(nodes))
        kept = [any(info.pod.name.startswith("keep") for info in pods.values()) for pods in nodes.pods]
        return np.array(kept, dtype=np.uint8)


PLUGINS = {**IN_TREE, "NodePorts": type("NodePorts", (Keeper,), {})}


def crowded():
    """Node n0 is kept by a pod that may go, n1 by one that may not, and n2 is too small."""
    return stage(
        [node("n0"), node("n1"), node("n2", cpu="1")],
        [
            placed("keep0", "1", 1),
            placed("spared", "1", 5),
            placed("keep1", "1", 99, on="n1"),
            placed("low", "3", 1, on="n1"),
            placed("small", "1", 1, on="n2"),
        ],
        plugins=PLUGINS,
    )


async def test_6_4_a_sidecar_is_asked_about_nodes_without_their_victims():
    """It lets the pod pass while the pod that it minds is evicted on trial, and not after its restoration."""
    assert {"n0": ["keep0"]} == await crowded().victims(preemptor("2"))


async def test_6_4_it_is_asked_about_all_candidates_at_once():
    """Once about all nodes in the cycle; then about the two that others let pass: once, and in each turn."""
    s = crowded()
    await s.victims(preemptor("2"))
    (plugin,) = [plugin for plugin in s.framework.plugins.filter if plugin.name == "NodePorts"]

    assert [3, 2, 2, 2] == plugin.asked


async def test_6_2_4_where_there_is_no_candidate_every_node_has_its_reason():
    """Those that were ruled out without asking the plugin, too."""
    s = stage([node("n0", cpu="1")], [placed("keep0", "1", 1)], plugins=PLUGINS)
    result = await s.preempt(preemptor("2"))

    assert "1 Insufficient cpu" in result.status.message
