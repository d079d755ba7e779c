"""Pods move so that what waits fits: few of them, each to a node of the engine's, or none."""

import json
import random

import pytest

from berth.config.descheduling.policy_file import read_policy
from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.descheduling.cluster import read_files
from berth.descheduling.planner import plan
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.unit.descheduling.kit import (
    NOW,
    budget,
    moves,
    node,
    planned,
    policy,
    running,
)
from tests.unit.simulation.kit import pod, profiles, written

GPU = "example.com/gpu"
PACKING = profiles(
    {
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": GPU, "weight": 1}]}
                },
            }
        ]
    }
)
"""Fuller nodes first, as on clusters whose GPUs are scarce."""


def consolidation(**args):
    return policy(("Consolidation", args))


def gpus(name, count, **labels):
    made = node(name, cpu="100", labels=labels)
    made["status"]["capacity"] |= {GPU: str(count)}
    return made


def holding(document, count):
    """The same pod, with so many GPUs."""
    resources = document["spec"]["containers"][0]["resources"]
    amounts = {"requests": {**resources["requests"], GPU: str(count)}, "limits": {GPU: str(count)}}
    document["spec"]["containers"][0]["resources"] = amounts
    return document


def on(name, at, count, **fields):
    return holding(running(name, at, **fields), count)


def waiting(name, count, **fields):
    return holding(pod(name, **fields), count)


def still(found):
    """Why what waits waits still, by name."""
    return {left.pod: left.why for left in found.left_alone if not left.node}


def packed(tmp_path, *documents, **args):
    return planned(tmp_path, consolidation(**args), *documents, configuration=PACKING)


def test_one_pod_moves_for_a_job_that_needs_a_whole_node(tmp_path):
    """The room is there in pieces: the pod that has less to move does so."""
    nodes = gpus("n0", 8), gpus("n1", 8)
    pods = on("small", "n0", 1), on("large", "n1", 5)

    found = packed(tmp_path, *nodes, *pods, waiting("job", 8))

    assert [("small", "n0", "n1")] == moves(found)
    assert {"default/job": "n0"} == found.moves[0].makes_room_for
    assert {} == still(found)


def test_nothing_moves_where_nothing_waits(tmp_path):
    """Room in pieces is no harm by itself."""
    found = packed(tmp_path, gpus("n0", 8), gpus("n1", 8), on("a", "n0", 1), on("b", "n1", 1))

    assert [] == moves(found)
    assert "nothing waits that could get room" == found.idle[0].why


def test_few_pods_move(tmp_path):
    """Of two nodes the one is cleared that takes fewer moves."""
    nodes = gpus("n0", 8), gpus("n1", 8), gpus("n2", 8)
    pods = *(on(f"a{i}", "n0", 1) for i in range(3)), on("b", "n1", 3), on("c", "n2", 5)

    found = packed(tmp_path, *nodes, *pods, waiting("job", 8))

    assert [("b", "n1")] == [(name, source) for name, source, _ in moves(found)]


def test_none_moves_where_one_finds_no_node(tmp_path):
    """What would be evicted for good stays, and what waits says so."""
    found = packed(
        tmp_path, gpus("n0", 8), gpus("n1", 8), on("a", "n0", 4), on("b", "n1", 5), waiting("job", 8)
    )

    assert [] == moves(found)
    assert still(found)["pod default/job"].startswith("it would not fit if up to 20 pods of no higher")


def test_pods_of_higher_priority_stay(tmp_path):
    """No pod moves for one of lower priority."""
    high = {"priority": 10}
    documents = gpus("n0", 8), gpus("n1", 8), on("a", "n0", 1, **high), on("b", "n1", 5, **high)

    lower = packed(tmp_path, *documents, waiting("job", 8, priority=9))
    equal = packed(tmp_path, *documents, waiting("job", 8, priority=10))

    assert (
        "it would not fit if up to 20 pods of no higher priority moved to other nodes"
        == (still(lower)["pod default/job"])
    )
    assert [("a", "n0", "n1")] == moves(equal)


def test_budgets_are_kept(tmp_path):
    """A pod whose budget allows no disruption stays."""
    labels = {"app": "web"}
    pods = on("a", "n0", 1, labels=labels), on("b", "n1", 5, labels=labels)
    documents = gpus("n0", 8), gpus("n1", 8), *pods

    tight = packed(tmp_path, *documents, budget("web", 0, **labels), waiting("job", 8))
    free = packed(tmp_path, *documents, budget("web", 1, **labels), waiting("job", 8))

    assert [] == moves(tight)
    assert [("a", "n0", "n1")] == moves(free)


def test_the_number_of_moves_is_bounded(tmp_path):
    """maxMoves is for one that waits."""
    nodes = gpus("n0", 8), gpus("n1", 8), gpus("n2", 8)
    documents = *nodes, on("a0", "n0", 1), on("a1", "n0", 1), on("b", "n1", 7), on("c", "n2", 7)

    few = packed(tmp_path, *documents, waiting("job", 8), maxMoves=1)
    enough = packed(tmp_path, *documents, waiting("job", 8), maxMoves=2)

    assert [] == moves(few)
    assert 2 == len(enough.moves)
    assert ["Consolidation pod default/job"] * 2 == [move.group for move in enough.moves]


def test_jobs_below_the_least_priority_wait(tmp_path):
    """leastPriority says for whom pods move."""
    documents = gpus("n0", 8), gpus("n1", 8), on("small", "n0", 1), on("large", "n1", 5)

    found = packed(tmp_path, *documents, waiting("job", 8), leastPriority=1)

    assert [] == moves(found)


def gang(name, count, gpus, *, least=None, topology=None):
    """A PodGroup of so many pods with so many GPUs each."""
    spec = {"schedulingPolicy": {"gang": {"minCount": least or count}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    head = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": name}}
    group = {"schedulingGroup": {"podGroupName": name}}
    return {**head, "spec": spec}, *(waiting(f"{name}-{i}", gpus, **group) for i in range(count))


def planned_for_groups(tmp_path, *documents, gates=("GenericWorkload", "GangScheduling"), **args):
    """The plan of a scheduler that knows groups."""
    chosen = read_policy(json.dumps(consolidation(**args)).encode(), "policy.yaml")
    loaded = load(json.dumps(PACKING), gates=FeatureGates(dict.fromkeys(gates, True)))
    file = written(tmp_path / "cluster.json", *documents)
    return plan(read_files([file], chosen), chosen, SimulationOptions(loaded), NOW)


def test_a_gang_fits_whole_or_nothing_moves_for_it(tmp_path):
    """Two nodes are cleared for two pods of a group; where only one can be, neither is."""
    two = gang("train", 2, 8)
    base = gpus("n0", 8), gpus("n1", 8), gpus("n2", 8), on("a", "n0", 1), on("b", "n1", 2)

    found = planned_for_groups(tmp_path, *base, on("c", "n2", 4), *two)
    full = planned_for_groups(tmp_path, *base, on("c", "n2", 6), *two)

    assert {("a", "n0", "n2"), ("b", "n1", "n2")} == set(moves(found))
    assert {"default/train-0", "default/train-1"} == set(found.moves[-1].makes_room_for)
    assert [] == moves(full)
    assert "pod group default/train" in still(full)


def test_a_gang_gets_room_in_one_domain(tmp_path):
    """Pods move within reach of the group's topology alone, where room anywhere would be of no use."""
    nodes = [gpus(f"n{i}", 8, rack=f"r{i // 2}") for i in range(4)]
    pods = on("a", "n0", 1), on("b", "n1", 7), on("c", "n2", 1), on("d", "n3", 2)
    group = gang("train", 2, 8, topology="rack")
    gates = "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling"
    extra = gpus("spare", 4, rack="r9")

    found = planned_for_groups(tmp_path, *nodes, *pods, extra, *group, gates=gates)

    assert {"c", "d"} == {name for name, _, _ in moves(found)}
    assert {"n2", "n3"} == set(found.moves[-1].makes_room_for.values())


@pytest.mark.parametrize("seed", range(30))
def test_the_scheduler_carries_it_out(tmp_path, seed):
    """Moves made in their order, the whole scheduler binds what waited, and each moved pod as planned."""
    chance = random.Random(seed)
    names = [f"n{i}" for i in range(chance.randint(3, 6))]
    left = dict.fromkeys(names, 8)
    pods = []
    for i in range(12):
        count, at = chance.choice((1, 1, 2, 3, 4)), chance.choice(names)
        if left[at] >= count:
            left[at] -= count
            pods.append(on(f"p{i}", at, count))
    jobs = [waiting(f"job{i}", chance.choice((5, 6, 7, 8))) for i in range(2)]
    documents = [*(gpus(name, 8) for name in names), *pods, *jobs]

    found = packed(tmp_path, *documents)
    moved = {move.pod: move.to for move in found.moves}
    after = [_moved(each, moved) for each in documents]
    gets = {pod: node for move in found.moves for pod, node in move.makes_room_for.items()}
    chosen = read_policy(json.dumps(consolidation()).encode(), "policy.yaml")
    file = written(tmp_path / "after.json", *after)
    cluster = read_files([file], chosen)
    outcome = simulate(cluster.objects, SimulationOptions(load(json.dumps(PACKING))))
    again = plan(read_files([file], chosen), chosen, SimulationOptions(load(json.dumps(PACKING))), NOW)

    waits = {each.pod for each in outcome.pending}
    assert set() == waits & set(gets)
    assert not found.moves or gets
    assert [] == again.moves


def _moved(document, moved):
    key = f"default/{document['metadata']['name']}"
    if key in moved and document["kind"] == "Pod":
        return {**document, "spec": {**document["spec"], "nodeName": moved[key]}}
    return document
