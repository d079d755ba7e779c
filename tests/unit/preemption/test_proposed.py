"""What a plugin proposes to evict, tried by all other plugins before the first eviction."""

import pytest
from msgspec.structs import replace

from tests.unit.preemption.kit import node, placed, preemptor, stage

BIG = preemptor("3")


def refusal(node_name, why):
    """What is said of a proposal that would be of no use."""
    text = f"plugin queues would evict pods for node {node_name}, where the pod would not fit without them"
    return f"{text}: {why}"


@pytest.mark.parametrize(
    ("victims", "said"),
    [
        pytest.param(("a", "b"), "", id="both"),
        pytest.param(("a",), refusal("n0", "Insufficient cpu"), id="too few"),
        pytest.param(("a", "elsewhere"), refusal("n0", "Insufficient cpu"), id="one on another node"),
        pytest.param(("a", "b", "elsewhere"), "", id="more than are on the node"),
    ],
)
async def test_victims_that_make_room(victims, said):
    """A node is nominated, and pods are evicted, only where the pod fits without them."""
    pods = [placed("a", "2"), placed("b", "2"), placed("elsewhere", "4", on="n1")]
    made = stage([node("n0"), node("n1")], pods)
    request = replace(await made.request(BIG), plugin="queues")
    chosen = [pod for pod in pods if pod.name in victims]
    result = await made.preemption.evict(request, "n0", chosen)

    assert said == result.status.message
    assert (result.nominating_info and result.nominating_info.node_name) == (None if said else "n0")


async def test_who_is_leaving_counts_as_gone():
    """A pod that is ending on the node needs no second eviction to make the pod fit."""
    pods = [placed("a", "2"), placed("b", "2", terminating=True)]
    made = stage([node("n0")], pods)
    request = replace(await made.request(BIG), plugin="queues")
    result = await made.preemption.evict(request, "n0", pods[:1])

    assert "n0" == result.nominating_info.node_name
