# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Groups that go to one part of the cluster (core 7.6)."""

import numpy as np
import pytest

from berth.framework.interface import (
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PlacementsResult,
)
from berth.framework.status import failed, unschedulable
from tests.fakes import Named
from tests.scenarios.pod_groups.kit import TOPOLOGY, UNSCHEDULABLE, Groups
from tests.scenarios.pod_groups.plugins import TurnsDown

FIT = ("GangScheduling", "NodeResourcesFit")
BY_ZONE = (*FIT, "TopologyPlacementGenerator", "PodGroupPodsCount")


class Halves(Named, PlacementGeneratePlugin):
    """The first node, and the others."""

    def __init__(self, result=None):
        super().__init__("Halves")
        self.result = result

    def generate_placements(self, state, group, nodes, parent):
        if self.result is not None:
            return self.result
        first, others = np.array([nodes.row_of["n0"]]), [i for i, n in enumerate(nodes.names) if n != "n0"]
        return PlacementsResult(placements=(Placement("first", first), Placement("rest", np.array(others))))


class Ranks(Named, PlacementScorePlugin):
    """Scores placements by name."""

    def __init__(self, **scores):
        super().__init__("Ranks")
        self.scores = scores

    def score_placements(self, state, group, nodes, proposed):
        self.seen = {one.placement.name: len(one.assignments) for one in proposed}
        return np.array([self.scores[one.placement.name] for one in proposed], dtype=np.int64)


def zoned(*plugins, **zones):
    """A cluster with nodes of one CPU, so many in each zone."""
    cluster = Groups(*(plugins or BY_ZONE), gates=TOPOLOGY)
    for zone, count in zones.items():
        for i in range(count):
            cluster.add_node(f"{zone}-{i}", cpu="1", labels={"zone": zone})
    return cluster


def halved(*plugins, rest=3):
    cluster = Groups(*FIT, *plugins, gates=TOPOLOGY)
    for i in range(1 + rest):
        cluster.add_node(f"n{i}", cpu="1" if i else "3")
    return cluster


async def test_7_6_1_without_a_plugin_all_nodes_are_one_placement():
    """The message of a group that fits nowhere counts one placement, that of its pods all nodes."""
    cluster = Groups(*FIT, gates=TOPOLOGY)
    cluster.add_node("n0", cpu="1")
    cluster.add_node("n1", cpu="1")
    cluster.add_gang(3, "a", "b", "c", cpu="2")
    await cluster.run()

    text = f"0/1 placements are available, first placement status: {UNSCHEDULABLE}"
    assert ("False", "Unschedulable", text) == cluster.group_condition()
    assert "0/2 nodes are available: 2 Insufficient cpu." == cluster.message("a")


@pytest.mark.parametrize(
    ("result", "reason", "text"),
    [
        (PlacementsResult(failed("broken")), "SchedulerError", "broken"),
        (PlacementsResult(unschedulable("nowhere")), "Unschedulable", "nowhere"),
        (PlacementsResult(), "Unschedulable", "no feasible placements found"),
    ],
)
async def test_7_6_1_a_plugin_that_fails_gives_the_group_its_status(result, reason, text):
    """No member is tried, and all members share what the plugin said."""
    cluster = halved(Halves(result))
    cluster.add_gang(2, "a", "b")
    await cluster.run()

    assert ("False", reason, text) == cluster.group_condition()
    assert [text, text] == [cluster.message("a"), cluster.message("b")]


async def test_7_6_1_a_group_goes_to_one_zone():
    """Three pods go to the zone with three nodes; nodes without the label are none of its."""
    cluster = zoned(z1=2, z2=3)
    cluster.add_node("bare")
    cluster.add_group(min_count=3, topology="zone")
    cluster.add_members("a", "b", "c", cpu="1")
    await cluster.run()

    assert {"z2-0", "z2-1", "z2-2"} == set(cluster.bound.values())


async def test_7_6_1_a_group_that_is_somewhere_stays_there():
    """With a pod on a node already, only the zone of that node is tried."""
    cluster = zoned(z1=2, z2=4)
    cluster.add_group(min_count=2, topology="zone")
    cluster.add_member("old", node_name="z1-0", cpu="1")
    cluster.add_member("a", cpu="1")
    await cluster.run()

    assert "z1-1" == cluster.bound["a"]


async def test_7_6_2_a_placement_has_its_nodes_alone():
    """Members count only the placement's nodes, and a nomination outside of it does not help."""
    cluster = halved(Halves(), rest=2)
    cluster.add_gang(3)
    async with cluster.paused():
        for name in "abc":
            cluster.add_member(name, cpu="2", nominated_node_name="n0")
        await cluster.turn()
        results = sorted(cluster.message(name) for name in "abc")

        assert "0/1 nodes are available: 1 Insufficient cpu." in results
        assert {} == cluster.bound


async def test_7_6_2_an_error_in_one_placement_is_the_result():
    """What breaks in the first placement is not tried in the second."""
    cluster = halved(Halves(), TurnsDown(a=RuntimeError("broken")))
    cluster.add_gang(1, "a")
    await cluster.run()

    assert "SchedulerError" == cluster.group_condition()[1]
    assert 'running "TurnsDown" filter plugin: broken' == cluster.message("a")


async def test_7_6_3_and_11_9_6_where_none_fits_the_first_one_speaks():
    """The group's condition names the first of two placements, its pods' what they met there."""
    cluster = zoned(z1=2, z2=2)
    cluster.add_group(min_count=3, topology="zone")
    cluster.add_members("a", "b", "c", cpu="1")
    await cluster.run()

    text = f"0/2 placements are available, first placement status: {UNSCHEDULABLE}"
    assert ("False", "Unschedulable", text) == cluster.group_condition()
    assert {} == cluster.bound


async def test_7_6_4_and_11_9_6_the_one_that_fits_is_taken():
    """Room for two in the one zone and for three in the other."""
    cluster = zoned(z1=3, z2=2)
    cluster.add_group(min_count=3, topology="zone")
    cluster.add_members("a", "b", "c", cpu="1")
    await cluster.run()

    assert {"z1-0", "z1-1", "z1-2"} == set(cluster.bound.values())


@pytest.mark.parametrize(("scores", "on_first"), [({"first": 9, "rest": 3}, 3), ({"first": 3, "rest": 9}, 0)])
async def test_7_6_4_of_several_the_highest_score_wins(scores, on_first):
    """Plugins see who would go where, and choose."""
    ranks = Ranks(**scores)
    cluster = halved(Halves(), ranks)
    cluster.add_gang(3, "a", "b", "c", cpu="1")
    await cluster.run()

    assert {"first": 3, "rest": 3} == ranks.seen
    assert on_first == list(cluster.bound.values()).count("n0")


async def test_7_6_4_a_score_out_of_range_is_an_error():
    """101 is not taken."""
    cluster = halved(Halves(), Ranks(first=101, rest=0))
    cluster.add_gang(3, "a", "b", "c", cpu="1")
    await cluster.run()

    assert "SchedulerError" == cluster.group_condition()[1]
    assert "invalid score 101" in cluster.group_condition()[2]
    assert {} == cluster.bound


async def test_7_6_4_more_pods_of_the_group_are_better():
    """Of two zones that a gang of two fits in, the one with room for its third pod."""
    cluster = zoned(z1=2, z2=3)
    cluster.add_group(min_count=2, topology="zone")
    cluster.watch.hold()
    cluster.add_members("a", "b", "c", cpu="1")
    cluster.watch.release()
    await cluster.run()

    assert {"z2-0", "z2-1", "z2-2"} == set(cluster.bound.values())


async def test_7_6_4_placement_plugins_are_timed():
    """Their points are in the histogram of extension points, once for each attempt."""
    cluster = halved(Halves(), Ranks(first=1, rest=2))
    cluster.add_gang(3, "a", "b", "c", cpu="1")
    await cluster.run()
    name = "framework_extension_point_duration_seconds_count"
    points = ("PlacementGenerate", "PlacementScore")

    assert [1, 1] == [
        cluster.metric(name, extension_point=point, status="Success", profile="default-scheduler")
        for point in points
    ]
