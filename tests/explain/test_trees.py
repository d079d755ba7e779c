"""A tree of groups, explained: what is missing, and in which branch."""

import pytest

from berth.aggregated_api.text_pages import pod_group_page
from berth.explain.overviews import UnknownError
from berth.objects.pods.pod_spec import SchedulingGroup
from tests.explain.asking import Asked, as_json
from tests.explain.test_overviews import views
from tests.scenarios.pod_groups.kit import group
from tests.scenarios.pod_groups.test_trees import GATES, tree


def inference(cluster, **pods):
    """A tree of two gangs of two, with so many pods each."""
    cluster.add(tree("inference", 2))
    for name, count in pods.items():
        cluster.add(group(name, 2, parentCompositePodGroupName="inference"))
        for i in range(count):
            cluster.add_pod(f"{name}-{i}", cpu="1", scheduling_group=SchedulingGroup(name))


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        ("inference", "The tree inference waits: 1 of 2 groups are complete."),
        ("prefill", "The tree inference waits: 1 of 2 groups are complete."),
        ("decode", "The gang needs 2 pods and has 1: 1 more have to be created."),
    ],
)
async def test_a_branch_without_its_pods(asked, cause):
    """Asked about any group of the tree, the page has all of it."""
    cluster = Asked(gates=GATES, release=(1, 37))
    cluster.add_node("n0")
    inference(cluster, decode=1, prefill=2)
    await cluster.tick(1)
    found = await views(cluster).pod_group("default", asked)
    lines = list(pod_group_page(as_json(found)))

    assert cause == found.cause
    assert [
        "compositepodgroup inference: 1 of 2 groups, 0 of 3 pods with a node: 1 of 2 groups are complete",
        "  podgroup decode: 1 of 2 pods, 0 of 1 pods with a node: 1 of 2 pods are there",
        "  podgroup prefill: 2 of 2 pods, 0 of 2 pods with a node",
    ] == [line for line in lines if "with a node" in line][1:]


async def test_a_branch_without_room():
    """The branch that found no nodes says why, in the words of its condition."""
    cluster = Asked(gates=GATES, release=(1, 37))
    cluster.add_node("n0", cpu="3")
    inference(cluster, decode=2, prefill=2)
    await cluster.tick(1)
    found = await views(cluster).pod_group("default", "inference")
    lacks = {one.group: one.lacks for one in found.tree}

    assert (4, 0) == (found.pods, found.scheduled)
    assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in lacks["prefill"]


async def test_a_group_that_is_in_no_tree():
    cluster = Asked(gates=GATES, release=(1, 37))
    cluster.add(group("g", 1))

    assert [] == (await views(cluster).pod_group("default", "g")).tree
    with pytest.raises(UnknownError):
        await views(cluster).pod_group("default", "h")
