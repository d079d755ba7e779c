"""Explanations of pods that are made to cost much: their work grows no faster than the pods do."""

import msgspec
import pytest

from berth.explain.edits import EDITORS
from berth.explain.volume_places import MAX_VOLUMES, ExplainedVolumes
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.mirrors.store import Store
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm
from berth.objects.pods.pod_spec import (
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
from berth.testing.storage import claim_volume, make_claim, make_volume
from tests.hostile.work import calls, growth


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


def test_a_large_pod_as_it_would_be():
    """What is sent of it to other processes is made in one pass, and once for all of them."""

    def made(n):
        before = make_pod("p", **containers(n))
        less = Resources(requests={"cpu": "500m"})
        changed = tuple(msgspec.structs.replace(one, resources=less) for one in before.spec.containers)
        after = before.with_spec(msgspec.structs.replace(before.spec, containers=changed))
        known = msgspec.json.encode(before.written())
        return lambda: HypotheticalPod(before, after).object(known)

    assert growth(made, 50) < 1.1


def test_the_place_of_one_more_node_among_many_volumes():
    """So many volumes are looked at and no more, and once for all of the pod's claims."""

    def looked(n):
        claims, volumes = Store(), Store()
        for i in range(n):
            claims.put(make_claim(f"c{i}"))
            volumes.put(make_volume(f"v{i}", near={"zone": ["a"]}))
        pod = make_pod("p", volumes=tuple(claim_volume(f"c{i}") for i in range(50)))
        return lambda: ExplainedVolumes(claims, volumes).of(pod)

    few, many = calls(looked(2 * MAX_VOLUMES)), calls(looked(4 * MAX_VOLUMES))
    assert many < 1.1 * few
