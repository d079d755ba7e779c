"""Requests are spread over nodes, or concentrated on few, as far as the scheduler would do that."""

import pytest

from tests.unit.descheduling.kit import MOST_ALLOCATED, moves, node, planned, policy, running, why


def low(**args):
    thresholds = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}
    return policy(("LowNodeUtilization", {**thresholds, **args}))


def high(**args):
    return policy(("HighNodeUtilization", {"thresholds": {"cpu": 40}, **args}))


def crowd(count, on="n0", cpu="1", **fields):
    return [running(f"{on}-{i}", on, cpu=cpu, **fields) for i in range(count)]


def test_pods_leave_overutilised_nodes(tmp_path):
    """Until the node is at its target, and no longer."""
    found = planned(tmp_path, low(), node("n0", cpu="10"), node("n1", cpu="10"), *crowd(8))

    assert [("n0-0", "n0", "n1"), ("n0-1", "n0", "n1")] == moves(found)
    assert "n0 from cpu 80.0 % to cpu 70.0 %" == found.moves[0].gain


def test_a_node_that_would_be_overutilised_is_no_better(tmp_path):
    """A pod that is too large for every target stays."""
    bound = running("bound", "n0", cpu="2", nodeSelector={"kubernetes.io/hostname": "n0"})
    pods = running("large", "n0", cpu="7"), bound

    found = planned(tmp_path, low(), node("n0", cpu="10"), node("n1", cpu="10"), *pods)

    assert [] == moves(found)
    assert ["the scheduler would place it on n1: n1 would be overutilised: cpu 70.0 %"] == why(found, "large")


def test_enough_nodes_have_to_be_underutilised(tmp_path):
    """With as few underutilised nodes as numberOfNodes nothing moves."""
    documents = node("n0", cpu="10"), node("n1", cpu="10"), *crowd(8)

    assert [] == moves(planned(tmp_path, low(numberOfNodes=1), *documents))


def test_deviations_from_the_mean(tmp_path):
    """Thresholds may be distances from the mean use."""
    args = {"useDeviationThresholds": True, "thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10}}

    found = planned(tmp_path, low(**args), node("n0", cpu="10"), node("n1", cpu="10"), *crowd(4))

    assert [("n0-0", "n0", "n1")] == moves(found)


def test_limits_of_a_node(tmp_path):
    """evictionLimits.node ends it earlier."""
    found = planned(
        tmp_path, low(evictionLimits={"node": 1}), node("n0", cpu="10"), node("n1", cpu="10"), *crowd(9)
    )

    assert [("n0-0", "n0", "n1")] == moves(found)
    assert why(found, "n0-8")[0].endswith("evictionLimits.node 1 is reached")


def test_underutilised_nodes_are_emptied(tmp_path):
    """All pods of a node leave, for a node in use that is not underutilised itself."""
    documents = node("n0", cpu="10"), node("n1", cpu="10"), *crowd(2), *crowd(5, "n1")

    found = planned(tmp_path, high(), *documents, configuration=MOST_ALLOCATED)

    assert [("n0-0", "n0", "n1"), ("n0-1", "n0", "n1")] == moves(found)
    assert ["HighNodeUtilization n0"] * 2 == [move.group for move in found.moves]


def test_a_node_is_emptied_whole_or_not_at_all(tmp_path):
    """Where one pod of the node has to stay all of them do."""
    stuck = running("stuck", "n0", nodeSelector={"kubernetes.io/hostname": "n0"})
    documents = node("n0", cpu="10"), node("n1", cpu="10"), *crowd(2), stuck, *crowd(5, "n1")

    found = planned(tmp_path, high(), *documents, configuration=MOST_ALLOCATED)

    assert [] == found.moves
    assert ["the scheduler would place it on n0 again"] == why(found, "n0-0")


def test_a_protected_pod_keeps_its_node(tmp_path):
    """A pod that may not be evicted keeps the others on its node, and is named."""
    documents = node("n0", cpu="10"), node("n1", cpu="10"), *crowd(2), *crowd(5, "n1")

    found = planned(
        tmp_path, high(), *documents, running("bare", "n0", owner=""), configuration=MOST_ALLOCATED
    )

    assert [] == found.moves
    assert why(found, "n0-0")[0].startswith("default/bare has to stay: it has no owner")


def test_a_scheduler_that_spreads_does_not_empty_nodes(tmp_path):
    """Under the usual scores pods would come back, and the reason says what to change."""
    documents = node("n0", cpu="10"), node("n1", cpu="10"), *crowd(2), *crowd(5, "n1")

    found = planned(tmp_path, high(), *documents)

    assert [] == found.moves
    assert "the scheduler would place it on n0 again" in why(found, "n0-0")[0]


@pytest.mark.parametrize(("cpu", "moved"), [("1", 1), ("0", 0)])
def test_pods_that_ask_for_nothing(tmp_path, cpu, moved):
    """In the mode OnlyThresholdingResources a node with a pod that asks for nothing is left alone."""
    documents = node("n0", cpu="10"), node("n1", cpu="10"), *crowd(1, cpu=cpu), *crowd(5, "n1")

    found = planned(
        tmp_path, high(evictionModes=["OnlyThresholdingResources"]), *documents, configuration=MOST_ALLOCATED
    )

    assert moved == len(found.moves)
