"""Equal pods of a group are counted in placements: what is decided is what trying them there comes to."""

import random

import pytest

from berth.evaluation.equal_pods import EqualPods
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import TopologySpreadConstraint
from berth.plugins.node_resources_fit.plugin import NodeResourcesFit
from berth.pod_groups import placement_choice
from tests.failures.reporting import reports
from tests.scenarios.pod_groups.kit import TOPOLOGY, Groups

BY_RELEASE = {
    (1, 36): TOPOLOGY,
    (1, 38): {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True},
}

SPREAD = TopologySpreadConstraint(2, "zone", "DoNotSchedule", LabelSelector({"app": "x"}))


async def decided(monkeypatch, seed, release, *, counting):
    """What placements score in the last group's choice, its condition, and how many of its pods are bound."""
    chance, scores = random.Random(seed), {}
    run_scores = placement_choice.run_placement_scores

    async def noted(framework, state, group, nodes, proposed):
        totals = await run_scores(framework, state, group, nodes, proposed)
        found = zip(proposed, totals.tolist(), strict=True)
        scores[group.name] = {one.placement.name: (len(one.assignments), total) for one, total in found}
        return totals

    with monkeypatch.context() as patch:
        patch.setattr(placement_choice, "run_placement_scores", noted)
        if not counting:
            patch.setattr(EqualPods, "countable", lambda *_: False)
        cluster = Groups(gates=BY_RELEASE[release], release=release)
        for i in range(chance.randrange(3, 12)):
            cpu, zone = chance.randrange(1, 5), chance.choice("abcd")
            cluster.add_node(f"n{i}", cpu=str(cpu), labels={"zone": zone} if zone != "d" else {})
            for j in range(chance.randrange(3)):
                cluster.add_pod(f"p{i}-{j}", cpu="500m", node_name=f"n{i}")
        count = chance.randrange(1, 7)
        ports = chance.choice([(), (8080,)])
        cluster.add_group("g", chance.choice([None, count, 1 + count // 2]), topology="zone")
        for i in range(count):
            cluster.add_member(f"g{i}", cpu="1", host_ports=ports)
        await cluster.run()
        bound = sum(name.startswith("g") for name in cluster.bound)
        return scores, cluster.group_condition("g"), bound


@pytest.mark.parametrize("release", BY_RELEASE)
@pytest.mark.parametrize("seed", range(40))
async def test_counted_as_tried(monkeypatch, seed, release):
    """Each placement has the same number of pods and the same score, and the group the same outcome."""
    tried = await decided(monkeypatch, seed, release, counting=False)

    assert tried == await decided(monkeypatch, seed, release, counting=True)


def five_zones():
    """A zone of one node each, and which of the nodes pods are tried on."""
    cluster, tried = Groups(gates=BY_RELEASE[1, 38], release=(1, 38)), []
    for zone in "abcde":
        cluster.add_node(zone, cpu="4", labels={"zone": zone})
    real = cluster.cache.try_pod

    def try_pod(snapshot, sign, info):
        tried.append(info.pod.node_name)
        real(snapshot, sign, info)

    cluster.cache.try_pod = try_pod
    return cluster, tried


async def test_equal_pods_are_tried_in_one_placement():
    """Of a gang that fits in five zones only the zone that it goes to sees attempts."""
    cluster, tried = five_zones()
    cluster.add_group("g", 2, topology="zone")
    cluster.add_members("g0", "g1", cpu="1")
    await cluster.run()

    assert [*cluster.bound.values()] == tried


@pytest.mark.parametrize("kind", ["two classes", "spread by node", "beside a nominated pod"])
async def test_others_are_tried_in_each_placement(kind):
    """Where more than each node by itself counts, the group is tried in all zones."""
    cluster, tried = five_zones()
    cluster.add_group("g", 2, topology="zone")
    spread = (SPREAD,) if kind == "spread by node" else ()
    if kind == "beside a nominated pod":
        cluster.add_pod("waits", cpu="1", nominated_node_name="a", gates=["later"])
    for name, cpu in (("g0", "1"), ("g1", "2" if kind == "two classes" else "1")):
        cluster.add_member(name, cpu=cpu, labels={"app": "x"}, topology_spread_constraints=spread)
    await cluster.run()

    assert set("abcde") == set(tried)


@reports("group-miscounted", log="`pod group tried in all placements, as it was miscounted`, with group")
async def test_a_plugin_that_counts_too_many(monkeypatch, caplog):
    """What is tried decides: the gang has no room, whatever was counted."""
    cluster, tried = five_zones()
    monkeypatch.setattr(NodeResourcesFit, "room", lambda *args: args[-1])
    cluster.add_group("g", 2, topology="zone")
    cluster.add_members("g0", "g1", cpu="3")
    await cluster.run()

    assert {} == cluster.bound
    assert set("abcde") == set(tried)
    assert "pod group tried in all placements, as it was miscounted group=default/g" in caplog.text
