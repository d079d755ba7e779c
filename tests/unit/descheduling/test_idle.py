"""A strategy that proposes no pod says why, with the figures that its arguments are about."""

import pytest

from berth.descheduling.text import plan_lines
from tests.unit.descheduling.kit import node, planned, policy, running

LOW = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}
REQUIRED = ["requiredDuringSchedulingIgnoredDuringExecution"]


def crowd(on, count):
    return [running(f"{on}-{i}", on, owner=f"{on}-{i}") for i in range(count)]


def cluster(*counts, **spec):
    """Nodes of ten CPUs, with so many pods of one."""
    nodes = [node(f"n{i}", cpu="10", **spec) for i in range(len(counts))]
    return [*nodes, *(pod for i, count in enumerate(counts) for pod in crowd(f"n{i}", count))]


def said(tmp_path, written, documents):
    """Why each strategy has nothing to do; nothing is moved, and none of the pods is left alone."""
    found = planned(tmp_path, written, *documents)
    assert ([], []) == (found.moves, found.left_alone)
    return [each.why for each in found.idle]


@pytest.mark.parametrize(
    ("counts", "args", "why"),
    [
        pytest.param(
            (8, 4),
            {},
            "no node is underutilised: the emptiest, n1, has cpu 40.0 %, threshold cpu 30.0 %",
            id="none below the thresholds",
        ),
        pytest.param(
            (8, 2), {"numberOfNodes": 1}, "1 underutilised node, no more than numberOfNodes 1", id="too few"
        ),
        pytest.param((1, 2), {}, "all 2 nodes are underutilised", id="all below"),
        pytest.param(
            (6, 2),
            {},
            "no node is overutilised: the fullest, n0, has cpu 60.0 %, target cpu 60.0 %",
            id="none above a target",
        ),
        pytest.param(
            (8, 2),
            {"evictableNamespaces": {"exclude": ["default"]}},
            "1 overutilised node, without a pod that may move and asks for what its node has too much of",
            id="no pod that may move",
        ),
    ],
)
def test_low_node_utilization(tmp_path, counts, args, why):
    """Each of its five ends has its own words."""
    written = policy(("LowNodeUtilization", {**LOW, **args}))

    assert [why] == said(tmp_path, written, cluster(*counts))


def test_cordoned_nodes_are_not_underutilised(tmp_path):
    """LowNodeUtilization puts pods on no cordoned node, and says where there are no others."""
    written = policy(("LowNodeUtilization", LOW))

    assert ["every node is cordoned"] == said(tmp_path, written, cluster(8, 0, unschedulable=True))


@pytest.mark.parametrize(
    ("counts", "args", "why"),
    [
        pytest.param(
            (8, 4),
            {},
            "no node is underutilised: the emptiest, n1, has cpu 40.0 %, threshold cpu 30.0 %",
            id="none below the thresholds",
        ),
        pytest.param((8, 0), {}, "1 underutilised node of 2, and no pod on them", id="empty already"),
        pytest.param(
            (8, 2), {"numberOfNodes": 1}, "1 underutilised node, no more than numberOfNodes 1", id="too few"
        ),
        pytest.param(
            (1, 2), {}, "all 2 nodes are underutilised, none is left to take their pods", id="all below"
        ),
        pytest.param(
            (8, 2),
            {"evictableNamespaces": {"exclude": ["default"]}},
            "1 underutilised node, each with a pod that nodeSelector, evictableNamespaces or "
            "evictionModes keep",
            id="no pod that may move",
        ),
    ],
)
def test_high_node_utilization(tmp_path, counts, args, why):
    """Each of its five ends has its own words."""
    written = policy(("HighNodeUtilization", {"thresholds": {"cpu": 30}, **args}))

    assert [why] == said(tmp_path, written, cluster(*counts))


@pytest.mark.parametrize(
    ("strategy", "args", "why"),
    [
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": REQUIRED},
            "none of 3 pods is on a node that does not meet its node affinity or selector",
        ),
        (
            "RemovePodsViolatingNodeTaints",
            {},
            "none of 3 pods is on a node with a taint that counts (NoSchedule) and is not tolerated",
        ),
        (
            "RemovePodsViolatingInterPodAntiAffinity",
            {},
            "none of 3 pods is kept off its node by required anti-affinity, its own or another's",
        ),
        (
            "RemovePodsHavingTooManyRestarts",
            {"podRestartThreshold": 5},
            "none of 3 pods was restarted 5 times or more",
        ),
        (
            "PodLifeTime",
            {"maxPodLifeTimeSeconds": 60},
            "none of 3 pods is older than 60 s and meets all criteria that the arguments set",
        ),
        (
            "RemoveFailedPods",
            {},
            "no pod is left to look at by nodeSelector, namespaces, labelSelector and moves before",
        ),
        ("RemoveDuplicates", {}, "none of 3 pods shares its node with another of the same owner and images"),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            {},
            "none of 3 pods breaks a constraint of DoNotSchedule where it is",
        ),
    ],
)
def test_strategies_by_pod(tmp_path, strategy, args, why):
    """They say how many pods they looked at, and what none of them is."""
    assert [why] == said(tmp_path, policy((strategy, args)), cluster(2, 1))


def test_failed_pods_that_stay(tmp_path):
    """RemoveFailedPods counts those that failed."""
    failed = running("f", "n0", status={"phase": "Failed"})
    why = "none of 1 pod that failed meets all criteria that the arguments set (minPodLifetimeSeconds 3600)"

    assert [why] == said(tmp_path, policy("RemoveFailedPods"), [node("n0"), failed])


def test_no_pod_to_look_at(tmp_path):
    """Selectors that leave no pod are named."""
    written = policy(("RemoveDuplicates", {"namespaces": {"include": ["other"]}}))

    assert ["no pod is left to look at by nodeSelector, namespaces, labelSelector and moves before"] == said(
        tmp_path, written, cluster(2)
    )


def test_what_is_printed(tmp_path):
    """The text has a line for each strategy that has nothing to do, and none for one that moves pods."""
    taint = {"key": "old", "value": "x", "effect": "NoSchedule"}
    documents = node("n0", taints=[taint]), node("n1"), running("a", "n0"), running("b", "n1", owner="b")

    lines = list(
        plan_lines(planned(tmp_path, policy("RemovePodsViolatingNodeTaints", "RemoveDuplicates"), *documents))
    )

    why = "none of 1 pod shares its node with another of the same owner and images"
    assert [f"  RemoveDuplicates: {why}"] == lines[lines.index("nothing to do:") + 1 :]
