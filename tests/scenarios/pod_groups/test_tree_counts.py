"""A tree with one pod group is counted in the placements of its root: decided is what trying it comes to."""

import random

import pytest

from berth.evaluation.equal_pods import EqualPods
from berth.plugins.gang_scheduling import GangScheduling
from berth.plugins.node_resources_fit.plugin import NodeResourcesFit
from berth.pod_groups import placement_choice
from tests.failures.reporting import reports
from tests.scenarios.pod_groups.test_trees import RACK, ZONE, Trees


async def decided(monkeypatch, seed, *, counting):
    """What the root's placements score, the conditions, how many pods are bound, and which were tried."""
    chance, scores, tried = random.Random(seed), {}, []
    run_scores = placement_choice.run_placement_scores

    async def noted(framework, state, group, nodes, proposed):
        totals = await run_scores(framework, state, group, nodes, proposed)
        if group.name == "root":
            found = zip(proposed, totals.tolist(), strict=True)
            scores.update({one.placement.name: (len(one.assignments), total) for one, total in found})
        return totals

    with monkeypatch.context() as patch:
        patch.setattr(placement_choice, "run_placement_scores", noted)
        if not counting:
            patch.setattr(EqualPods, "countable", lambda *_: False)
        cluster = Trees((1, 38))
        real = cluster.cache.try_pod
        cluster.cache.try_pod = lambda *args: (tried.append(args[-1].pod.name), real(*args))
        for i in range(chance.randrange(4, 14)):
            zone, rack = chance.choice("abc"), chance.choice("xyz")
            labels = {ZONE: zone, RACK: f"{zone}{rack}"}
            cluster.add_node(f"n{i}", cpu=str(chance.randrange(1, 5)), labels=labels)
        count = chance.randrange(2, 6)
        cluster.add_tree("root", chance.choice([None, 1]), topology=ZONE)
        cluster.add_tree("middle", 1, parent="root", topology=chance.choice([None, RACK]))
        gang = chance.choice([None, count, count])
        cluster.add_below("g", gang, parent="middle", topology=chance.choice([None, RACK]))
        cluster.add_members(*[f"g{i}" for i in range(count)], group="g", cpu=str(chance.randrange(1, 3)))
        await cluster.run()
        conditions = cluster.tree_condition(), cluster.tree_condition("middle"), cluster.group_condition("g")
        return scores, conditions, len(cluster.bound), tried


@pytest.mark.parametrize("seed", range(40))
async def test_counted_as_tried(monkeypatch, seed):
    """The root's placements have the same pods and the same score, and all groups the same outcome."""
    *expected, _ = await decided(monkeypatch, seed, counting=False)
    *found, _ = await decided(monkeypatch, seed, counting=True)

    assert expected == found


async def test_pods_of_a_counted_tree_are_tried_once(monkeypatch):
    """Most of the trees above cost one attempt a pod."""
    runs = [await decided(monkeypatch, seed, counting=True) for seed in range(20)]

    assert any(bound > 1 and len(tried) == bound for _, _, bound, tried in runs)


@pytest.mark.parametrize("racks", [2, 9])
async def test_groups_of_groups_are_judged_as_often_in_any_number_of_placements(monkeypatch, racks):
    """Before and after the one group below, once for all zones and racks, and once more where it is tried."""
    judged, judge = [], GangScheduling.placement_feasible

    def noted(plugin, state, group, progress):
        judged.append(group.name)
        return judge(plugin, state, group, progress)

    monkeypatch.setattr(GangScheduling, "placement_feasible", noted)
    cluster = Trees((1, 38))
    for i in range(2 * racks):
        cluster.add_node(f"n{i}", cpu="1", labels={ZONE: f"z{i % 2}", RACK: f"r{i}"})
    cluster.add_tree("root", 1, topology=ZONE)
    cluster.add_tree("middle", 1, parent="root", topology=RACK)
    cluster.add_below("g", 1, parent="middle")
    cluster.add_members("g0", group="g", cpu="1")
    await cluster.run()

    assert {"g0"} == set(cluster.bound)
    assert {"root": 4, "middle": 4} == {name: judged.count(name) for name in ("root", "middle")}


@reports("group-miscounted", log="`tree of groups tried in all placements, as it was miscounted`, with group")
async def test_a_plugin_that_counts_too_many(monkeypatch, caplog):
    """What is tried decides: the tree has no room, whatever was counted."""
    cluster = Trees((1, 38))
    monkeypatch.setattr(NodeResourcesFit, "room", lambda *args: args[-1])
    for zone in "ab":
        cluster.add_node(zone, cpu="4", labels={ZONE: zone})
    cluster.add_tree("root", 1, topology=ZONE)
    cluster.add_below("g", 2)
    cluster.add_members("g0", "g1", group="g", cpu="3")
    await cluster.run()

    assert {} == cluster.bound
    assert "tree of groups tried in all placements, as it was miscounted group=default/root" in caplog.text
