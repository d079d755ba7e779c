"""Nodes are relieved by what they really use, whatever pods request, and none is moved to and fro."""

import random

import pytest

from berth.descheduling.strategies.utilization import RELIEF_MARGIN
from tests.node_metrics import node_usage, pod_usage
from tests.unit.descheduling.kit import moves, node, planned, policy, running, why

MEASURED = {"metricsProviders": [{"source": "KubernetesMetrics"}]}
CORES = 10


ANCHOR = running("anchor", "n0", cpu="9", nodeSelector={"kubernetes.io/hostname": "n0"})
"""A pod that stays, and whose requests let the scheduler choose another node for the next one."""


def low(*, metrics=None, **args):
    thresholds = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}
    metrics = {"metricsUtilization": metrics or {"source": "KubernetesMetrics"}}
    return policy(("LowNodeUtilization", {**thresholds, **metrics, **args}), **MEASURED)


def nodes(*names):
    return [node(name, cpu=str(CORES)) for name in names]


def crowd(count, uses, on="n0", cpu="100m"):
    """Pods that request little and use so many cores each, and what metrics say of them."""
    made = [running(f"{on}-{i}", on, cpu=cpu) for i in range(count)]
    return [*made, *(pod_usage(each["metadata"]["name"], uses) for each in made)]


def test_use_counts_and_not_requests(tmp_path):
    """Pods leave until the node is at its target, by what each of them uses."""
    documents = *nodes("n0", "n1"), *crowd(8, uses=1), node_usage("n0", 9), node_usage("n1", 1)

    found = planned(tmp_path, low(), *documents)

    assert [("n0-0", "n0", "n1"), ("n0-1", "n0", "n1"), ("n0-2", "n0", "n1")] == moves(found)
    assert (
        "n0 is overutilised by metrics.k8s.io, of the input: cpu 90.0 % (target 60.0 %)"
        == found.moves[0].found
    )
    assert "n0 from cpu 90.0 % to cpu 80.0 %" == found.moves[0].gain


def test_requests_alone_relieve_no_node(tmp_path):
    """A node whose pods request all and use nothing stays as it is."""
    documents = *nodes("n0", "n1"), *crowd(9, uses=0, cpu="1"), node_usage("n0", 4), node_usage("n1", 1)

    found = planned(tmp_path, low(), *documents)

    assert [] == moves(found)
    assert found.idle[0].why.startswith(
        "no node is overutilised by metrics.k8s.io, of the input: the fullest, n0"
    )


@pytest.mark.parametrize(("used", "moved"), [(6.4, 0), (6.6, 1)])
def test_a_node_is_relieved_once_it_is_clearly_above(tmp_path, used, moved):
    """Five points above the target are the bound, and the idle line names it."""
    documents = *nodes("n0", "n1"), *crowd(4, uses=1), node_usage("n0", used), node_usage("n1", 1)

    found = planned(tmp_path, low(), *documents)

    assert moved == len(found.moves)
    assert moved or found.idle[0].why.endswith("target cpu 60.0 %, relieved from cpu 65.0 % on")


@pytest.mark.parametrize("seed", range(20))
def test_what_varies_within_the_margin_moves_nothing_again(tmp_path, seed):
    """Where all nodes were relieved no later plan moves a pod while use varies by less than the margin."""
    chance = random.Random(seed)
    names = [f"n{i}" for i in range(5)]
    on = {f"p{i}": "n0" for i in range(30)}
    uses = {name: chance.uniform(0.2, 0.4) for name in on}

    def load():
        return {name: sum(uses[pod] for pod, at in on.items() if at == name) for name in names}

    def documents(points):
        yield from nodes(*names)
        yield from (running(pod, at, cpu="10m") for pod, at in on.items())
        yield from (pod_usage(pod, used) for pod, used in uses.items())
        for name, used in load().items():
            yield node_usage(name, max(0, used + chance.uniform(-points, points) * CORES / 100))

    on |= {pod: to for pod, _, to in moves(planned(tmp_path, low(), *documents(0)))}
    later = [moves(planned(tmp_path, low(), *documents(0.99 * RELIEF_MARGIN))) for _ in range(3)]

    assert 6 >= max(load().values())
    assert [[], [], []] == later


def test_deviations_are_from_the_mean_of_what_is_used(tmp_path):
    """Thresholds may be distances from the mean use of the nodes that have metrics."""
    args = {"useDeviationThresholds": True, "thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10}}
    used = node_usage("n0", 7), node_usage("n1", 1)

    found = planned(tmp_path, low(**args), *nodes("n0", "n1"), *crowd(7, uses=1), *used)

    assert [("n0-0", "n0", "n1"), ("n0-1", "n0", "n1")] == moves(found)


def test_a_node_without_metrics_is_left_out_and_named(tmp_path):
    """It is neither relieved nor counted on, and the note says what to look at."""
    used = node_usage("n0", 9), node_usage("n1", 5)

    found = planned(tmp_path, low(), *nodes("n0", "n1", "idle"), *crowd(9, uses=1), *used)

    assert [] == moves(found)
    assert found.idle[0].why.startswith("no node is underutilised: the emptiest, n1")
    assert (
        "no metrics of the last 300 seconds of 1 node (idle): neither relieved nor counted on"
        in found.notes[0]
    )
    assert found.notes[0].endswith("see the log of metrics-server and the node's kubelet")


def test_metrics_that_are_too_old_are_none(tmp_path):
    """A node whose metrics stopped is like one without."""
    used = node_usage("n0", 9, age=301), node_usage("n1", 1), node_usage("n2", 1)

    found = planned(tmp_path, low(), *nodes("n0", "n1", "n2"), *crowd(9, uses=1), *used)

    assert [] == moves(found)
    assert "1 node (n0)" in found.notes[0]


def test_a_pod_without_metrics_stays(tmp_path):
    """What it would take with it is not known."""
    used = node_usage("n0", 9), node_usage("n1", 1)

    found = planned(tmp_path, low(), *nodes("n0", "n1"), ANCHOR, running("young", "n0"), *used)

    assert [
        "the scheduler would place it on n1: there are no metrics of it by metrics.k8s.io, of the input"
    ] == why(found, "young")


def test_pods_that_metrics_do_not_show_yet_count_by_requests(tmp_path):
    """A node that has just got pods is not filled by what it used before them."""
    young = [running(f"young-{i}", "n1", cpu="1") for i in range(5)]
    used = node_usage("n0", 9), node_usage("n1", 1)

    found = planned(tmp_path, low(), *nodes("n0", "n1"), ANCHOR, *crowd(2, uses=1), *young, *used)

    assert [] == moves(found)
    assert ["the scheduler would place it on n1: n1 would be overutilised: cpu 70.0 %"] == why(found, "n0-0")


def test_memory_counts_in_bytes_and_pods_by_number(tmp_path):
    """Each resource has its own target."""
    args = {"thresholds": {"pods": 20, "memory": 30}, "targetThresholds": {"pods": 50, "memory": 60}}
    small = nodes("n0", "n1")
    for each in small:
        each["status"]["capacity"] |= {"memory": "10Gi", "pods": "10"}
    used = node_usage("n0", 1, memory=1 << 30), node_usage("n1", 1, memory=1 << 30)

    found = planned(tmp_path, low(**args), *small, *crowd(8, uses=0), *used)

    assert 3 == len(found.moves)
    assert "n0 from pods 80.0 %, memory 10.0 % to pods 70.0 %, memory 10.0 %" == found.moves[0].gain


def test_without_metrics_nothing_is_evicted_for_them(tmp_path):
    """The failure names source and remedy; other strategies go on."""
    both = policy(
        "RemovePodsViolatingNodeTaints",
        ("LowNodeUtilization", low()["profiles"][0]["pluginConfig"][1]["args"]),
        **MEASURED,
    )
    tainted = node("n0", taints=[{"key": "old", "value": "x", "effect": "NoSchedule"}])

    found = planned(tmp_path, both, tainted, node("n1"), running("a", "n0"))

    assert [("a", "n0", "n1")] == moves(found)
    assert found.failures[0].startswith(
        "LowNodeUtilization: KubernetesMetrics: the input has no NodeMetrics; add"
    )
    assert [] == found.idle


def test_the_older_spelling(tmp_path):
    """metricsServer and metricsCollector are read as the provider and the source."""
    older = low(metrics={"metricsServer": True})
    del older["metricsProviders"]
    documents = *nodes("n0", "n1"), *crowd(8, uses=1), node_usage("n0", 7), node_usage("n1", 1)

    found = planned(tmp_path, {**older, "metricsCollector": {"enabled": True}}, *documents)

    assert [("n0-0", "n0", "n1")] == moves(found)
