"""The plugin that holds gangs together (core 7.8)."""

import pytest
from msgspec.structs import replace

from berth.config.releases.release import RELEASES
from berth.framework.status import SUCCESS
from tests.scenarios.pod_groups.kit import Groups
from tests.scenarios.pod_groups.plugins import RefusesInEarnest, TurnsDown

TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


def gate(cluster, name):
    """What the plugin says of the pod at the door of the queue."""
    plugin = cluster.core.profiles.frameworks["default-scheduler"].plugins.by_name["GangScheduling"]
    return plugin.pre_enqueue(cluster.pod(name))


async def test_7_8_1_without_its_group_a_pod_is_held_back():
    """The group may yet come."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_member("a")
    await cluster.run()

    text = 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    assert ("gated", text) == (cluster.where("a"), gate(cluster, "a").message)


async def test_7_8_2_and_11_9_1_a_gang_is_held_back_until_enough_of_it_is_known():
    """Two of three are gated; the third lets all of them through."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_gang(3, "a", "b")
    await cluster.run()
    assert ["gated", "gated"] == [cluster.where("a"), cluster.where("b")]
    assert TOO_FEW == gate(cluster, "a").message
    cluster.add_member("c")
    await cluster.run()

    assert {"a", "b", "c"} == cluster.bound.keys()


async def test_7_8_2_pods_on_nodes_count_as_known():
    """A gang that lost a pod is complete with a new one."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_group(min_count=3)
    cluster.add_members("a", "b", node_name="n0")
    cluster.add_member("c")
    await cluster.run()

    assert "n0" == cluster.bound["c"]


async def test_7_8_2_a_basic_group_needs_no_number():
    """Its first pod goes at once."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_group()
    cluster.add_member("a")
    await cluster.run()

    assert {"a": "n0"} == cluster.bound


async def test_7_8_3_the_group_lets_its_pods_through():
    """Pods that came before their group go once it is there; those of another stay."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_members("a", "b")
    cluster.add_member("x", group="h")
    cluster.add_group(min_count=2)
    await cluster.run()

    assert {"a", "b"} == cluster.bound.keys()
    assert "gated" == cluster.where("x")


async def test_7_8_3_a_pod_of_another_group_does_not():
    """Only a sibling's coming is looked at."""
    cluster = Groups()
    cluster.add_gang(2, "a")
    attempts = cluster.metric("queue_incoming_pods_total", queue="active", event="UnschedulablePodAdd")
    cluster.add_gang(2, "x", group="h")
    cluster.add_pod("p")

    assert "gated" == cluster.where("a")
    assert attempts + 1 == cluster.metric(
        "queue_incoming_pods_total", queue="active", event="UnschedulablePodAdd"
    )


async def test_7_8_3_pods_of_a_gang_that_is_too_small_are_not_asked():
    """Only the pod that makes the gang complete has those before it asked, each once, and no other gang's."""
    cluster = Groups()
    cluster.add_gang(4, "a", "b", "c")
    cluster.add_members("x", "y", group="h")
    hints = {"plugin": "GangScheduling", "event": "UnschedulablePodAdd", "hint": "Queue"}
    asked = "queueing_hint_execution_duration_seconds_count"
    assert 0 == cluster.metric(asked, **hints)
    cluster.add_member("d")

    assert 3 == cluster.metric(asked, **hints)


async def test_7_8_4_too_few_in_earnest_wait_for_the_others():
    """A gang of which a pod fails in earnest waits for up to five minutes, and the pod is tried again."""
    cluster = Groups("GangScheduling", RefusesInEarnest("c"))
    cluster.add_node("n0")
    cluster.add_gang(3, "a", "b", "c")
    await cluster.run()

    assert {} == cluster.bound
    assert (["c"], ["a", "b"], []) == cluster.state()
    assert ["GangScheduling"] == cluster.waiting_pods.get(cluster.pod("a").uid).pending_plugins()


async def test_7_8_5_the_missing_pod_lets_the_waiting_ones_go():
    """Once the third has a node in earnest, all three are bound."""
    flaky = RefusesInEarnest("c")
    cluster = Groups("GangScheduling", flaky)
    cluster.add_node("n0")
    cluster.add_gang(3, "a", "b", "c")
    await cluster.run()
    flaky.names = ()
    await cluster.tick(3)

    assert {"a", "b", "c"} == cluster.bound.keys()


async def test_7_8_5_a_trial_lets_no_pod_go():
    """As long as the third is placed by way of trial alone, the others wait."""
    cluster = Groups("GangScheduling", RefusesInEarnest("c"))
    cluster.add_node("n0")
    cluster.add_gang(3, "a", "b", "c")
    await cluster.tick(20)

    assert cluster.attempts("scheduled") > 2
    assert {} == cluster.bound
    assert (["c"], ["a", "b"], []) == cluster.state()


async def test_7_8_6_who_waits_in_vain_is_forgotten():
    """After five minutes a waiting pod gives its node back, each on its own."""
    cluster = Groups("GangScheduling", RefusesInEarnest("c"))
    cluster.add_node("n0")
    cluster.add_gang(3, "a", "b", "c")
    await cluster.tick(299)
    assert 2 == len(cluster.state()[1])
    cluster.delete_pod("c")
    await cluster.tick(1.5)
    text = "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling."

    assert (["a", "b"], [], []) == cluster.state()
    assert [text, text] == [cluster.message("a"), cluster.message("b")]


async def test_7_8_6_the_others_keep_waiting():
    """A waiting pod that is deleted takes none of the others with it."""
    cluster = Groups("GangScheduling", RefusesInEarnest("c"))
    cluster.add_node("n0")
    cluster.add_gang(3, "a", "b", "c")
    await cluster.run()
    cluster.delete_pod("a")
    await cluster.run()

    assert ["b"] == cluster.state()[1]


async def test_11_9_3_a_gang_that_fits_is_bound():
    """Room for all: three bindings, and the group's condition is True."""
    cluster = Groups("GangScheduling", TurnsDown(a=SUCCESS), "NodeResourcesFit")
    cluster.add_node("n0", cpu="3")
    cluster.add_gang(3, "a", "b", "c", cpu="1")
    await cluster.run()

    assert 3 == len(cluster.bound)
    assert ("True", "Scheduled", "") == cluster.group_condition()


@pytest.mark.parametrize("release", RELEASES)
async def test_the_replacement_of_a_member_says_what_it_waits_for(release):
    """kubernetes/kubernetes#142330: one of three has finished, and two are known; soon it says why."""
    cluster = Groups(release=release)
    cluster.add_node()
    cluster.add_gang(3, "succeeded", "failed", "runs")
    await cluster.run()
    finished = cluster.pod("succeeded")
    cluster.add(replace(finished, status=replace(finished.status, phase="Succeeded")))
    cluster.delete_pod("failed")
    await cluster.tick(60)
    cluster.add_member("replacement")
    await cluster.run()
    await cluster.tick(2)

    condition = cluster.condition("replacement")
    assert "replacement" not in cluster.bound
    assert ("False", "SchedulingGated", TOO_FEW) == (condition.status, condition.reason, condition.message)
