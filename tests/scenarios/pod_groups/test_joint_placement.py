"""Gangs that only a plan for all of their pods finds a place for, and those that it leaves as they are."""

import pytest

from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from tests.scenarios.pod_groups.kit import TOPOLOGY, Groups

ONE_BY_ONE = (
    "GangScheduling",
    ("NodeResourcesFit", 1),
    ("InterPodAffinity", 2),
    ("PodTopologySpread", 2),
)
JOINTLY = (*ONE_BY_ONE, "JointPlacement")
EITHER = pytest.mark.parametrize(("plugins", "placed"), [(ONE_BY_ONE, False), (JOINTLY, True)])

GROUPED = {"group": "g"}
MEMBERS = LabelSelector(match_labels=GROUPED)


def together(key="zone", labels=GROUPED):
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=key)
    return Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))


def apart(key="kubernetes.io/hostname", labels=GROUPED):
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=key)
    return Affinity(
        pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    )


def spread(key="zone", max_skew=1):
    return (
        TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=key,
            when_unsatisfiable="DoNotSchedule",
            label_selector=MEMBERS,
        ),
    )


def zoned(*plugins, gates=None, **zones):
    """A cluster whose zones have nodes of so many CPUs each."""
    cluster = Groups(*plugins, gates=gates)
    for zone, sizes in zones.items():
        for i, cpu in enumerate(sizes):
            name = f"{zone}-{i}"
            cluster.add_node(name, cpu=cpu, labels={"zone": zone, "kubernetes.io/hostname": name})
    return cluster


@EITHER
async def test_a_gang_that_is_to_be_in_one_zone_goes_where_all_of_it_fits(plugins, placed):
    """One by one the first pod goes to the emptier node, in whose zone there is no room for the others."""
    cluster = zoned(*plugins, a=["4"], b=["2", "2", "2"])
    cluster.add_gang(3, "x", "y", "z", cpu="2", labels=GROUPED, affinity=together())
    await cluster.run()

    assert ({"b-0", "b-1", "b-2"} if placed else set()) == set(cluster.bound.values())


@EITHER
async def test_a_gang_of_pods_that_seek_others_of_it_is_placed_in_another_order(plugins, placed):
    """The workers come first and go near the driver, which comes last."""
    cluster = zoned(*plugins, a=["4"], b=["4"])
    cluster.add_group("g", 3)
    cluster.add_members(
        "a1",
        "a2",
        cpu="1",
        priority=1,
        labels={"role": "worker"},
        affinity=together(labels={"role": "driver"}),
    )
    cluster.add_member("z", cpu="1", labels={"role": "driver"})
    await cluster.run()

    assert (3 if placed else 0) == len(cluster.bound)


@EITHER
async def test_shapes_that_fragment_nodes_are_packed(plugins, placed):
    """Two nodes of 6: pods of 2 go first and spread, then 4 and 4 fit on neither."""
    cluster = zoned(*plugins, a=["6", "6"])
    cluster.add_group("g", 4)
    cluster.add_members("a1", "a2", cpu="2", priority=1)
    cluster.add_members("z1", cpu="5")
    cluster.add_members("z2", cpu="2")
    await cluster.run()

    assert (4 if placed else 0) == len(cluster.bound)


@EITHER
async def test_pods_that_are_spread_evenly_leave_the_small_zone_to_those_that_fit_there(plugins, placed):
    """Skew 1 over two zones: the large pod fits in one alone, so the small ones balance it."""
    cluster = zoned(*plugins, a=["4"], b=["2"])
    cluster.add_group("g", 3)
    cluster.add_members("a1", cpu="1", labels=GROUPED, topology_spread_constraints=spread())
    cluster.add_members("b1", cpu="4", labels=GROUPED, topology_spread_constraints=spread())
    cluster.add_members("c1", cpu="1", labels=GROUPED, topology_spread_constraints=spread(max_skew=5))
    await cluster.run()

    assert (3 if placed else 0) == len(cluster.bound)


async def test_without_the_plugin_and_with_a_plan_that_gains_nothing_pods_are_where_they_were():
    """A gang that one by one places well stays as it was placed."""
    found = []
    for plugins in (ONE_BY_ONE, JOINTLY):
        cluster = zoned(*plugins, a=["8", "2"], b=["5"])
        cluster.add_gang(3, "x", "y", "z", cpu="1")
        await cluster.run()
        found.append(cluster.bound)

    assert found[0] == found[1]


async def test_a_group_in_one_topology_domain_is_planned_within_it():
    """Both zones have room for the sum; in each of them only a plan finds it, and the group is in one."""
    cluster = zoned(
        *JOINTLY, "TopologyPlacementGenerator", "PodGroupPodsCount", gates=TOPOLOGY, a=["6", "6"], b=["1"]
    )
    cluster.add_group("g", 4, topology="zone")
    cluster.add_members("a1", "a2", cpu="2", priority=1)
    cluster.add_members("z1", cpu="5")
    cluster.add_members("z2", cpu="2")
    await cluster.run()

    assert 4 == len(cluster.bound)


async def test_a_gang_of_more_pods_than_are_planned_goes_one_by_one_and_the_log_says_so(caplog):
    """65 pods."""
    cluster = zoned(*JOINTLY, a=["80"])
    names = [f"p{i:02}" for i in range(65)]
    cluster.add_gang(65, *names, cpu="1")
    await cluster.run()

    assert 65 == len(cluster.bound)
    assert "too large to be planned" in caplog.text
