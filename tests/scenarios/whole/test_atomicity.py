"""What must not fall apart where things happen at the same time (core 9.8)."""

import pytest

from berth.framework.status import unschedulable
from tests.fakes import Permits, PostFilters, Reserves
from tests.scenarios.binding.plugins import waits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import Doorkeeper


class Interrupts(PostFilters):
    """Lets something happen once the verdicts are in and before the pod goes back."""

    def __init__(self, action):
        super().__init__("Interrupts", unschedulable("no"))
        self.action = action

    async def post_filter(self, state, pod, diagnosis):
        self.action(pod)
        return super().post_filter(state, pod, diagnosis)


@pytest.mark.parametrize("moment", ["filtering", "after the verdict"])
async def test_9_8_1_and_9_8_2_no_event_falls_between_a_verdict_and_the_pool(moment):
    """A node that comes while the pod is on its way back brings it back out."""

    def come(_pod):
        if cluster.node("n1") is None:
            cluster.add_node("n1")

    door = Doorkeeper()
    cluster = Cluster(door, Interrupts(come if moment == "after the verdict" else lambda _: None))
    if moment == "filtering":
        door.during = come
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert ["p0", "p0"] == cluster.tried


async def test_9_8_3_an_update_reaches_the_pod_before_or_after_its_pop():
    """Before: the attempt sees it. After: the pod goes back with it, and it is an event."""
    door, seen = Doorkeeper(hints={}), []
    cluster = Cluster(door)
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        cluster.change_pod(labels={"version": "1"})
        door.during = lambda pod: (seen.append(pod.labels), cluster.change_pod(labels={"version": "2"}))
        await cluster.turn()

        assert [{"version": "1"}] == seen
        assert {"version": "2"} == cluster.queued().pod.labels


async def test_9_8_4_a_cycle_sees_one_instant():
    """A pod that is placed and a node that goes in the middle of it are for the next one."""
    door, sizes = Doorkeeper(hints={}), []

    def look(_pod):
        cluster.remove_node("n1")
        cluster.add_pod("other", node_name="n0")
        sizes.append((len(cluster.snapshot), int(cluster.snapshot.pod_count.sum())))

    cluster = Cluster(door)
    for name in ("n0", "n1"):
        cluster.add_node(name)
    async with cluster.paused():
        door.during = look
        cluster.add_pod()
        await cluster.turn()
        cluster.cache.update_snapshot(cluster.snapshot)

        assert [(2, 0)] == sizes
        assert (1, 1) == (len(cluster.snapshot), int(cluster.snapshot.pod_count.sum()))


async def test_9_8_5_a_decision_is_committed_before_the_next_pop():
    """Assumed, reserved and permitted, while bindings take their time."""
    calls = []
    cluster = Cluster(Reserves("R", calls=calls), Permits("P", calls=calls))
    cluster.add_node()
    cluster.pods_client.hold("bind")
    for name in ("p0", "p1"):
        cluster.add_pod(name)
    await cluster.run()

    assert ["R.reserve", "P.permit"] * 2 == calls
    assert 2 == len(cluster.calls("bind"))


async def test_9_8_6_one_outcome_reaches_a_waiting_pod():
    """Allowed, rejected and out of time at the same moment: the first counts."""
    cluster = Cluster(waits("W", 10))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    waiting = cluster.waiting_pods.get("default-p0")
    waiting.allow("W")
    taken = waiting.reject("W", "late")
    await cluster.tick(10)

    assert (False, {"p0": "n0"}) == (taken, cluster.bound)


async def test_9_8_7_kinds_come_in_any_order():
    """A pod before its node, and a node that goes before its pods."""
    cluster = Cluster("NodeResourcesFit")
    cluster.add_pod("placed", node_name="n0", cpu="3")
    cluster.add_pod("p0", cpu="2")
    await cluster.run()
    cluster.add_node("n0", cpu="4")
    await cluster.tick(2)
    crowded = dict(cluster.bound)
    cluster.remove_node("n0")
    cluster.delete_pod("placed")
    cluster.add_node("n0", cpu="4")
    await cluster.tick(2)

    assert ({"placed": "n0"}, {"p0": "n0"}) == (crowded, cluster.bound)
