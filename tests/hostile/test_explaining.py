"""Explanations of pods that are made to cost much: their work grows no faster than the pods do."""

import pytest

from berth.explain.edits import EDITORS
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm
from berth.objects.pod import (
    Affinity,
    Container,
    PodAffinity,
    PodAffinityTerm,
    Resources,
    TopologySpreadConstraint,
)
from berth.objects.taint import Taint, Toleration
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from tests.hostile.work import growth


def containers(n):
    return {"containers": [Container(f"c{i}", "a", Resources(requests={"cpu": "1"})) for i in range(n)]}


def tolerations(n):
    return {"tolerations": tuple(Toleration(f"k{i}", "Exists") for i in range(n))}


def selector(n):
    return {"node_selector": {f"k{i}": "v" for i in range(n)}}


def expressions(n):
    term = NodeSelectorTerm(tuple(Requirement(f"k{i}", "In", ("v",)) for i in range(n)))
    return {"affinity": Affinity(NodeAffinity(NodeSelector((term,))))}


def terms(n):
    term = PodAffinityTerm(LabelSelector({"a": "b"}), topology_key="k")
    return {"affinity": Affinity(pod_anti_affinity=PodAffinity((term,) * n))}


def constraints(n):
    one = TopologySpreadConstraint(1, "k", "DoNotSchedule", LabelSelector({"a": "b"}))
    return {"topology_spread_constraints": (one,) * n}


@pytest.mark.parametrize(
    ("plugin", "shape"),
    [
        ("NodeResourcesFit", containers),
        ("TaintToleration", tolerations),
        ("NodeAffinity", selector),
        ("NodeAffinity", expressions),
        ("InterPodAffinity", terms),
        ("PodTopologySpread", constraints),
    ],
)
def test_guesses_for_large_pods(plugin, shape):
    """What is tried is bounded, and making it is linear in the pod."""
    nodes = table([make_node("n0", taints=[Taint("gpu", "", "NoSchedule")])])

    def guesses(n):
        pod = make_pod("p", **shape(n))
        return lambda: list(EDITORS[plugin](pod, nodes, 0))

    assert growth(guesses, 200) < 1.5
    assert len(guesses(800)()) <= 10
