"""Trees whose groups are planned, each on its own: never with fewer pods than one by one."""

import random

import pytest

from berth.framework.group_plans import GroupPlan, PodGroupPlanPlugin, TriedPlan
from berth.framework.interface import PreFilterPlugin, PreFilterResult
from tests.fakes import Named
from tests.scenarios.pod_groups.kit import Groups
from tests.scenarios.pod_groups.test_trees import GATES, tree


class Planner(Named, PodGroupPlanPlugin, PreFilterPlugin):
    """Plans all pods of the group g on one node, as if that were best."""

    max_pods = 64

    def __init__(self, node):
        super().__init__("Planner")
        self.node = node

    async def plan(self, pods, start, ground):
        del ground
        plan = GroupPlan({pod.uid: self.node for pod in pods if pod.name.startswith("g")})
        goes, placed, total = start.worth
        return TriedPlan((goes, placed, total + 1), plan) if plan.node_of else None

    def pre_filter(self, state, pod, nodes):
        del nodes
        plan = state.get(GroupPlan)
        name = None if plan is None else plan.node_of.get(pod.uid)
        return PreFilterResult() if name is None else PreFilterResult(node_names=frozenset({name}))


@pytest.mark.parametrize(
    ("planned", "found"),
    [pytest.param("n0", "n0", id="a good plan"), pytest.param("n1", "n0", id="a bad one")],
)
async def test_a_planned_tree_goes_where_it_goes_one_by_one(planned, found):
    """The plan for g that leaves h no node is not carried out; one that leaves it some is."""
    cluster = Groups(
        "GangScheduling", "NodeResourcesFit", "NodeAffinity", Planner(planned), gates=GATES, release=(1, 38)
    )
    cluster.add_node("n0", cpu="8")
    cluster.add_node("n1", cpu="2", labels={"for": "h"})
    cluster.add(tree("root", 2))
    for name, selector in (("g", {}), ("h", {"for": "h"})):
        cluster.add_group(name, 2, parentCompositePodGroupName="root")
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1", node_selector=selector)
    await cluster.run()

    assert {"g0": found, "g1": found, "h0": "n1", "h1": "n1"} == cluster.bound


async def placed(seed, *planners):
    """How many pods of a drawn tree of groups find a node; on some clusters there is too little for all."""
    chance = random.Random(seed)
    cluster = Groups(
        "GangScheduling", ("NodeResourcesFit", 1), *planners, gates=GATES, release=(1, 38), seed=1
    )
    for number, cpu in enumerate(chance.sample(range(2000, 9000), chance.randint(2, 4))):
        cluster.add_node(f"n{number}", cpu=f"{cpu}m")
    names = "ghi"[: chance.randint(2, 3)]
    async with cluster.paused():
        cluster.add(tree("root", chance.randint(1, len(names))))
        for name in names:
            sizes = [chance.randint(500, 4000) for _ in range(chance.randint(1, 4))]
            cluster.add_group(name, chance.randint(1, len(sizes)), parentCompositePodGroupName="root")
            for number, cpu in enumerate(sizes):
                cluster.add_member(f"{name}{number}", group=name, cpu=f"{cpu}m")
        await cluster.turn()
        await cluster.tick(1)
    return len(cluster.bound)


@pytest.mark.parametrize("seed", [12, 16, 18, 26, 35, 37])
async def test_a_planned_tree_places_no_fewer_pods_than_one_by_one(seed):
    """In its first attempt: plans place more of five of these, and of 18 they alone would place fewer."""
    assert await placed(seed) <= await placed(seed, "JointPlacement")
