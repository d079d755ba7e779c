"""A simulation is compared with what kube-scheduler did: `python -m tests.chance --judge simulate`."""

import copy

import pytest

from tests.chance.comparing import Decided
from tests.chance.documents import KINDS
from tests.chance.simulating import differences
from tests.unit.simulation.kit import node, pod, profiles


def question(asked, *there):
    """A pod that is asked about, on a cluster of these objects, as a run keeps it."""
    objects = {resource.plural: [] for resource in KINDS.values()}
    for each in (*there, asked):
        each["metadata"]["namespace"] = "default"
        each["metadata"]["uid"] = f"uid of {each['metadata']['name']}"
        if each["kind"] == "Pod":
            each["spec"]["schedulerName"] = "default-scheduler"
    for each in there:
        objects[KINDS[each["kind"]].plural].append(each)
    return copy.deepcopy(
        {"objects": objects, "pod": asked, "config": profiles({"schedulerName": "default-scheduler"})}
    )


NODES = node("a"), node("b"), node("small", cpu="100m")
FULL = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are "
    "available: 1 Preemption is not helpful for scheduling."
)
LOW = pod("low", cpu="4", nodeName="a", priority=0)


@pytest.mark.parametrize(
    ("asked", "there", "theirs", "said"),
    [
        pytest.param(pod("p"), NODES, Decided("a"), "", id="one of the best nodes"),
        pytest.param(pod("p"), NODES, Decided("b"), "", id="the other one of them"),
        pytest.param(
            pod("p", cpu="50m"), NODES, Decided("small"), "bound to small: goes to", id="no best node"
        ),
        pytest.param(pod("p"), NODES, Decided(message="0/3"), "0/3: goes to", id="no node"),
        pytest.param(
            pod("p"), NODES[2:], Decided("small"), "bound to small: 0/1 nodes", id="a node that is full"
        ),
        pytest.param(pod("p"), NODES[2:], Decided(message=FULL), "", id="the same reason"),
        pytest.param(
            pod("p"), NODES[2:], Decided(message="0/1 nodes"), "0/1 nodes: 0/1", id="another reason"
        ),
        pytest.param(
            pod("p", cpu="4", priority=5),
            (NODES[0], LOW),
            Decided(nominated="a", victims={"default/low"}),
            "",
            id="the same victims",
        ),
        pytest.param(
            pod("p", cpu="4", priority=5),
            (NODES[0], LOW),
            Decided(nominated="a", victims={"default/other"}),
            "nominated to a",
            id="other victims",
        ),
        pytest.param(
            pod("p", cpu="4", priority=5), (NODES[0], LOW), Decided("a"), "a: preempts", id="no victims"
        ),
    ],
)
async def test_what_differs(asked, there, theirs, said):
    """A node that is not among the best, another reason and other victims are differences; ties are not."""
    found = await differences(question(asked, *there), theirs)

    assert bool(said) == bool(found)
    assert all(each.startswith(said) for each in found)
