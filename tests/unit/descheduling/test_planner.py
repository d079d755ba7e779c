"""A plan moves pods where the scheduler would put them, breaks no budget, and is not undone by the next."""

import pytest

from tests.benchmarks.deschedule import checked
from tests.unit.descheduling.kit import ZONE, budget, moves, node, planned, policy, running, why
from tests.unit.simulation.kit import pod

TAINTS = policy("RemovePodsViolatingNodeTaints")


def tainted(name="n0", **fields):
    return node(name, taints=[{"key": "old", "value": "x", "effect": "NoSchedule"}], **fields)


@pytest.mark.parametrize("seed", [*range(12), 44, 122])
def test_clusters_by_chance(tmp_path, seed):
    """The whole scheduler binds every evicted pod where the plan says, and a second plan is empty."""
    _, problems = checked(seed, tmp_path)

    assert [] == problems


def test_moves_count_on_those_before(tmp_path):
    """What one move fills is not there for the next."""
    pods = [running(f"p{i}", "n0", cpu="2") for i in range(3)]

    found = planned(tmp_path, TAINTS, tainted(), node("n1", cpu="4"), *pods)

    assert [("p0", "n0", "n1"), ("p1", "n0", "n1")] == moves(found)
    assert "Insufficient cpu" in why(found, "p2")[0]


def test_a_pod_that_was_resized_is_like_no_other(tmp_path):
    """What holds one pod on its node does not hold those of its template that ask for less by now."""
    low = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
    enlarged = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    pods = running("a", "n0", status=enlarged), running("b", "n0"), running("c", "n0", cpu="2", owner="")
    documents = node("n0", cpu="8"), node("n1", cpu="8"), running("d", "n1", cpu="2", owner=""), *pods

    found = planned(tmp_path, policy(("LowNodeUtilization", low)), *documents)

    assert [("b", "n0", "n1")] == moves(found)


def test_room_that_a_move_makes_is_used(tmp_path):
    """A pod that finds no place at first is tried again once others have moved."""
    selector = {"kubernetes.io/hostname": "n1"}
    both = policy(
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
        ),
    )
    first = running("a", "n0", cpu="3", nodeSelector=selector)
    second = running("b", "n1", cpu="3", nodeSelector={"kubernetes.io/hostname": "n2"})

    found = planned(tmp_path, both, node("n0"), node("n1"), node("n2"), first, second)

    assert [("b", "n1", "n2"), ("a", "n0", "n1")] == moves(found)


def test_budgets_are_counted_down(tmp_path):
    """A budget lets as many go as it allows, and those that are left alone say which it is."""
    pods = [running(f"p{i}", "n0", labels={"app": "a"}) for i in range(3)]

    found = planned(tmp_path, TAINTS, tainted(), node("n1"), budget("b", 2, app="a"), *pods)

    assert 2 == len(found.moves)
    assert ["PodDisruptionBudget default/b allows no more disruptions now"] == why(found, "p2")
    assert [("default/b",)] * 2 == [move.budgets for move in found.moves]


def test_two_budgets(tmp_path):
    """The API server evicts no pod that two budgets cover, so no plan does."""
    budgets = budget("b", 2, app="a"), budget("c", 2, app="a")

    found = planned(
        tmp_path, TAINTS, tainted(), node("n1"), *budgets, running("a", "n0", labels={"app": "a"})
    )

    assert [] == found.moves
    assert why(found, "a")[0].startswith("PodDisruptionBudgets default/b, default/c cover it")


@pytest.mark.parametrize(
    ("field", "count"),
    [
        ("maxNoOfPodsToEvictPerNode", 2),
        ("maxNoOfPodsToEvictPerNamespace", 1),
        ("maxNoOfPodsToEvictTotal", 1),
    ],
)
def test_limits(tmp_path, field, count):
    """The policy's limits end a plan; that of a node counts for each node."""
    limited = policy("RemovePodsViolatingNodeTaints", **{field: 1})
    pods = [running(f"p{i}", f"n{i % 2}") for i in range(4)]

    found = planned(tmp_path, limited, tainted("n0"), tainted("n1"), node("n2", cpu="9"), *pods)

    assert count == len(found.moves)
    assert [f"{field} 1 is reached"] == why(found, "p3")


def test_only_some_nodes(tmp_path):
    """Pods are taken from nodes that the policy's selector matches."""
    chosen = policy("RemovePodsViolatingNodeTaints", nodeSelector="pool=a")
    nodes = tainted("n0", labels={"pool": "a"}), tainted("n1", labels={"pool": "b"}), node("n2")

    found = planned(tmp_path, chosen, *nodes, running("a", "n0"), running("b", "n1"))

    assert [("a", "n0", "n2")] == moves(found)


def test_pods_that_wait_come_first(tmp_path):
    """A pod that waits for that place is put there before the evicted one, which then stays."""
    waiting = pod("w", cpu="4", labels={"app": "a"})
    waiting["spec"]["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "b"}}}
            ]
        }
    }
    nodes = tainted("n0", labels={ZONE: "z"}), node("n1", cpu="4", labels={ZONE: "z"})

    found = planned(tmp_path, TAINTS, *nodes, running("b", "n0", labels={"app": "b"}), waiting)

    assert [] == found.moves
    assert why(found, "b")[0].startswith("no node would take it: ")


def test_a_move_that_makes_room(tmp_path):
    """A pod that waits and fits once another has left is named with its node."""
    waiting = pod("w", cpu="4", tolerations=[{"operator": "Exists"}])

    found = planned(tmp_path, TAINTS, tainted(), node("n1", cpu="1"), running("a", "n0"), waiting)

    assert [("a", "n0", "n1")] == moves(found)
    assert {"default/w": "n0"} == found.moves[0].makes_room_for


def test_nodes_that_score_alike_are_all_named(tmp_path):
    """Where the scheduler would choose by chance every choice is better, and all are named."""
    found = planned(tmp_path, TAINTS, tainted(), node("n1"), node("n2"), running("a", "n0"))

    assert ("n1", ("n2",)) == (found.moves[0].to, found.moves[0].or_to)


def test_volumes_keep_pods_where_they_can_be_reached(tmp_path):
    """A pod with a local volume finds no other node, in the engine's words."""
    reach = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n0"]}]}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v", "storageClassName": "local"},
        "status": {"phase": "Bound"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "storageClassName": "local",
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data", "uid": "default/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": reach}},
        },
        "status": {"phase": "Bound"},
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]

    found = planned(
        tmp_path, TAINTS, tainted(), node("n1"), claim, volume, running("a", "n0", volumes=volumes)
    )

    assert [] == found.moves
    assert "didn't match PersistentVolume's node affinity" in why(found, "a")[0]


def test_pods_of_other_schedulers_stay(tmp_path):
    """A pod that no profile of the configuration schedules is left alone."""
    found = planned(tmp_path, TAINTS, tainted(), node("n1"), running("a", "n0", schedulerName="another"))

    assert ["no node would take it: schedulerName 'another' is of no profile here"] == why(found, "a")


def test_annotations_for_simulations_mean_nothing(tmp_path):
    """A pod's own word on when it ends does not make room in a plan."""
    ending = running("c", "n1", cpu="4", annotations={"simulation.berth.dev/duration-seconds": "1"})

    found = planned(tmp_path, TAINTS, tainted(), node("n1"), running("a", "n0"), ending)

    assert [] == found.moves
