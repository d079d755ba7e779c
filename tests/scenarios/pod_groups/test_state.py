"""Who belongs to a group, and how far each has come (core 7.1-7.3)."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from berth.client.pods import Rejected
from berth.framework.status import SUCCESS
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.scheduler.pages.cache_debugger import CacheDebugger
from berth.snapshot.pod_group_states import GroupKey
from berth.testing.builders import make_pod
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import Doorkeeper
from tests.scenarios.pod_groups.kit import Groups

KEY = GroupKey("default", "g")


async def test_7_1_1_groups_of_one_name_in_two_namespaces_are_two():
    """Pods of another namespace do not make a gang complete."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_gang(2, "a")
    beside = make_pod("b", namespace="other", scheduler_name=PROFILE, scheduling_group=SchedulingGroup("g"))
    cluster.add(beside)
    await cluster.run()

    assert {} == cluster.bound
    assert (["a"], [], []) == cluster.state()


async def test_7_2_1_and_11_9_4_pods_of_a_basic_group_go_on_their_own():
    """Room for two of three: two are bound, the third fails alone, and the group counts as scheduled."""
    cluster = Groups()
    cluster.add_node(cpu="2")
    cluster.add_group()
    cluster.watch.hold()
    cluster.add_members("a", "b", "c", cpu="1")
    cluster.watch.release()
    await cluster.run()
    (left,) = {"a", "b", "c"} - cluster.bound.keys()

    assert 2 == len(cluster.bound)
    assert cluster.message(left).startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert ("True", "Scheduled", "") == cluster.group_condition()


async def test_7_2_2_and_11_9_2_a_gang_goes_together_or_not_at_all():
    """Room for two of three: none is bound, and each learns its own reason."""
    cluster = Groups("GangScheduling", "NodeResourcesFit")
    cluster.add_node(cpu="2")
    cluster.add_gang(3, "a", "b", "c", cpu="1")
    await cluster.run()
    placed = [name for name in "abc" if cluster.where(name) == "error backoff"]
    (left,) = set("abc") - set(placed)

    assert {} == cluster.bound
    assert "backoff" == cluster.where(left)
    assert "0/1 nodes are available: 1 Insufficient cpu." == cluster.message(left)
    assert ("False", "Unschedulable", "pod group is unschedulable") == cluster.group_condition()


async def test_7_3_1_and_7_3_2_pods_count_where_they_are():
    """Pods without a node are unscheduled, pods on one assigned."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_gang(9, "a")
    cluster.add_member("b", node_name="n0")

    assert (["a"], [], ["b"]) == cluster.state()


async def test_7_3_3_an_update_is_stored():
    """The state holds the pod as the watch last showed it."""
    cluster = Groups()
    cluster.add_gang(9, "a")
    changed = cluster.change_pod("a", labels={"x": "y"})

    assert [changed] == list(cluster.cache.pod_groups.get(KEY).pods.values())


async def test_7_3_4_and_7_3_6_from_assumed_to_assigned():
    """A pod is assumed until its binding is observed."""
    cluster = Groups()
    cluster.add_node()
    cluster.pods_client.hold("bind")
    cluster.add_gang(2, "a", "b")
    await cluster.run()
    assert ([], ["a", "b"], []) == cluster.state()
    cluster.pods_client.release("bind")
    await cluster.run()

    assert ([], [], ["a", "b"]) == cluster.state()


async def test_7_3_5_a_pod_that_is_forgotten_is_unscheduled_again():
    """A binding that did not land takes the pod back among those without a node."""
    cluster = Groups()
    cluster.add_node()
    cluster.pods_client.answer_next("bind", Rejected(403, "no"))
    cluster.add_gang(1, "a")
    await cluster.run()

    assert (["a"], [], []) == cluster.state()


async def test_7_3_7_a_group_is_dropped_with_its_last_pod():
    """Deleted pods leave their group."""
    cluster = Groups()
    cluster.add_gang(9, "a", "b")
    cluster.delete_pod("a")
    assert (["b"], [], []) == cluster.state()
    cluster.delete_pod("b")

    assert [] == list(cluster.cache.pod_groups)


async def test_7_3_8_and_7_4_7_members_see_one_another_in_the_snapshot_alone():
    """Each finds those before it on their nodes; cache and state know nothing of it."""
    seen = []
    door = Doorkeeper(status=SUCCESS)
    door.during = lambda _: seen.append(
        (sum(len(pods) for pods in cluster.snapshot.pods), cluster.cache.pod_count(), cluster.state()[1])
    )
    cluster = Groups("GangScheduling", door)
    cluster.add_node()
    cluster.add_gang(3, "a", "b", "c")
    await cluster.run()

    assert [(0, 0, []), (1, 0, []), (2, 0, [])] == seen


@dataclass
class Mirror:
    """A reflector that is up to date: the API server's objects of one kind."""

    api: Any
    kind: type

    def objects(self):
        return self.api.all(self.kind)


@pytest.mark.parametrize(
    ("astray", "differences"),
    [
        pytest.param(lambda _: None, [], id="nothing"),
        pytest.param(
            lambda states: states.delete(states.get(KEY).pods["default-a"]),
            ["pod group default/g has pods {'b': 'assigned'}, rebuilt {'a': 'assigned', 'b': 'assigned'}"],
            id="a pod lost",
        ),
    ],
)
async def test_the_state_equals_one_that_is_rebuilt(astray, differences):
    """The cache debugger says which group has other pods than the watches showed."""
    cluster = Groups()
    cluster.add_node(cpu="2")
    cluster.add_group()
    cluster.add_members("a", "b", cpu="1")
    await cluster.run()
    mirrors = Mirror(cluster.api, Node), Mirror(cluster.api, Pod)
    astray(cluster.cache.pod_groups)
    report = await CacheDebugger(cluster.core, *mirrors, asyncio.Lock()).report()

    assert differences == [reported for reported in report["differences"] if "group" in reported]
