"""Pods that the engine would keep apart, or spread otherwise, move until it would not."""

import pytest

from tests.unit.descheduling.kit import ZONE, moves, node, planned, policy, running, why
from tests.unit.simulation.kit import profiles

APP = {"app": "a"}
HOST = "kubernetes.io/hostname"
ANTI = policy("RemovePodsViolatingInterPodAntiAffinity")
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": APP}}
        ]
    }
}


def spread(when="DoNotSchedule"):
    selector = {"matchLabels": APP}
    return [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": selector}]


def spreading(*constraints):
    args = {"constraints": list(constraints)} if constraints else {}
    return policy(("RemovePodsViolatingTopologySpreadConstraint", args))


def zones():
    return [node(f"n{i}", cpu="8", labels={ZONE: f"z{i}"}) for i in range(2)]


def test_pods_that_must_be_apart(tmp_path):
    """Of pods that keep apart from each other all but one leave, the least important first."""
    pods = [running(name, "n0", labels=APP, affinity=APART, priority=p) for name, p in (("a", 5), ("b", 1))]

    found = planned(tmp_path, ANTI, node("n0"), node("n1"), *pods)

    assert [("b", "n0", "n1")] == moves(found)
    assert "anti-affinity" in found.moves[0].found


def test_the_other_side_of_a_term(tmp_path):
    """A pod without a term moves, too, where it is the one that another must be apart from."""
    pods = running("a", "n0", labels=APP, priority=1), running("b", "n0", affinity=APART, priority=5)

    assert [("a", "n0", "n1")] == moves(planned(tmp_path, ANTI, node("n0"), node("n1"), *pods))


def test_nowhere_to_be_apart(tmp_path):
    """Where all nodes have such a pod none moves."""
    pods = [running(f"p{i}", f"n{i % 2}", labels=APP, affinity=APART) for i in range(3)]

    found = planned(tmp_path, ANTI, node("n0"), node("n1"), *pods)

    assert [] == found.moves
    assert "didn't match pod anti-affinity rules" in why(found, "p0")[0]


def test_a_domain_that_is_too_large(tmp_path):
    """Pods leave the domain until the engine would place each where it is, and no pod more."""
    pods = [running(f"p{i}", "n0", labels=APP, topologySpreadConstraints=spread()) for i in range(5)]

    found = planned(tmp_path, spreading(), *zones(), *pods)

    assert [("p0", "n0", "n1"), ("p1", "n0", "n1")] == moves(found)


def test_soft_constraints_count_where_they_are_chosen(tmp_path):
    """ScheduleAnyway is taken for DoNotSchedule if the policy says so."""
    constraint = spread("ScheduleAnyway")
    pods = [running(f"p{i}", "n0", labels=APP, topologySpreadConstraints=constraint) for i in range(3)]

    assert [] == moves(planned(tmp_path, spreading(), *zones(), *pods))
    assert [("p0", "n0", "n1")] == moves(planned(tmp_path, spreading("ScheduleAnyway"), *zones(), *pods))


def test_an_even_spread_stays(tmp_path):
    """Pods that stand as the engine would place them are no candidates."""
    pods = [running(f"p{i}", f"n{i % 2}", labels=APP, topologySpreadConstraints=spread()) for i in range(5)]

    found = planned(tmp_path, spreading(), *zones(), *pods)

    assert ([], []) == (found.moves, found.left_alone)


def by_node(key, when="DoNotSchedule"):
    return [{**spread(when)[0], "topologyKey": key}]


@pytest.mark.parametrize("lonely", ["a", "d", "z"])
@pytest.mark.parametrize("constraints", ["own", "default"])
def test_names_of_replicas_make_no_difference(tmp_path, lonely, constraints):
    """How many of one owner's pods leave a domain does not depend on which pod is looked at first."""
    own = {"topologySpreadConstraints": by_node(HOST)} if constraints == "own" else {}
    nodes = [node(name, cpu="16", labels={HOST: name}) for name in ("k1", "k2")]
    pods = [running(lonely, "k1", labels=APP, **own)]
    pods += [running(f"c{i}", "k2", labels=APP, **own) for i in range(6)]
    default = {**by_node(HOST)[0]}
    del default["labelSelector"]
    args = {"defaultingType": "List", "defaultConstraints": [default]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": APP}}

    found = planned(
        tmp_path,
        spreading(),
        *(*nodes, *pods, service),
        configuration=profiles({"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}),
    )

    assert [("k2", "k1")] * 2 == [(from_, to) for _, from_, to in moves(found)]
    assert {"k2"} == {move.found.partition(":")[0] for move in found.moves}


def test_pods_that_may_not_go_speak_for_themselves_alone(tmp_path):
    """Where those of the full node are too young, the only pod of another node is no candidate for them."""
    nodes = [node(name, cpu="16", labels={HOST: name}) for name in ("k1", "k2", "k3")]
    fields = {"labels": APP, "topologySpreadConstraints": by_node(HOST)}
    pods = [running(f"a{i}", "k1", age=10, **fields) for i in range(3)]
    young = policy("RemovePodsViolatingTopologySpreadConstraint", evictor={"minPodAge": "1h"})

    found = planned(tmp_path, young, *nodes, *pods, running("z", "k2", age=7200, **fields))

    assert [] == found.moves
    assert {f"a{i}" for i in range(3)} == {left.pod.partition("/")[2] for left in found.left_alone}
    assert {"k1"} == {left.found.partition(":")[0] for left in found.left_alone}
