"""From a chosen node to the binding cycle: assume, Reserve, Permit (core 5.1 to 5.3)."""

import pytest

from berth.framework.status import failed, unschedulable
from tests.fakes import Permits, PostFilters, Reserves, Scores
from tests.scenarios.binding.plugins import waits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import PENDING


async def tried(*plugins, **options):
    """One pod's attempt on one node."""
    cluster = Cluster(*plugins, **options)
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    return cluster


def first_message(cluster):
    return cluster.records[0].status.message


async def test_5_1_1_the_assumed_pod_is_a_copy():
    """The record in the queue keeps a pod without a node."""
    seen = []

    class Looks(Reserves):
        def reserve(self, state, pod, node_name):
            seen.append((pod.node_name, node_name, cluster.pod().node_name))
            return super().reserve(state, pod, node_name)

    cluster = Cluster(Looks("Looks"))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert [("n0", "n0", "")] == seen


async def test_5_1_2_a_pod_that_cannot_be_assumed_is_an_error():
    """Nothing was reserved, so nothing is given back."""
    reserves = Reserves("R")

    class Binds(Scores):
        def score(self, state, pod, nodes):
            if cluster.cache.get_pod(pod.uid) is None:
                cluster.cache.add_pod(pod.placed_on("n1"))
            return super().score(state, pod, nodes)

    cluster = Cluster(Binds("S"), reserves)
    for name in ("n0", "n1"):
        cluster.add_node(name)
    cluster.add_pod(nominated_node_name="n9")
    await cluster.run()

    assert "is in the cache, so can't be assumed" in first_message(cluster)
    assert ("SchedulerError", []) == (cluster.condition().reason, reserves.calls)
    assert "" == cluster.nomination()


async def test_5_2_1_and_11_6_11_a_rejection_unreserves_all_in_reverse():
    """Also those that were not reached; the rejector is a plugin like one that filtered."""
    calls, room = [], PostFilters("Room", unschedulable("no"))
    cluster = await tried(
        Reserves("A", calls=calls), Reserves("R", unschedulable("r"), calls), Reserves("C", calls=calls), room
    )

    assert ["A.reserve", "R.reserve", "C.unreserve", "R.unreserve", "A.unreserve"] == calls[:5]
    assert "0/1 nodes are available: 1 r." == first_message(cluster)
    assert ({"R"}, []) == (cluster.queued().rejectors, room.calls)
    assert 0 == cluster.cache.assumed_count()


async def test_5_2_2_an_error_names_the_plugin():
    """And has no rejector."""
    cluster = await tried(Reserves("R", failed("broken")))

    assert 'running Reserve plugin "R": broken' == first_message(cluster)
    assert ("error backoff", 0) == (cluster.where(), cluster.cache.assumed_count())


async def test_5_2_3_pending_is_a_rejection_that_skips_the_backoff_later():
    """The plugin is in both sets."""
    cluster = await tried(Reserves("R", PENDING))

    assert ({"R"}, {"R"}) == (cluster.queued().unschedulable_plugins, cluster.queued().pending_plugins)


async def test_5_3_1_a_rejection_ends_the_phase():
    """Later plugins are not asked; everything is undone."""
    calls = []
    cluster = await tried(
        Reserves("R", calls=calls), Permits("P", unschedulable("p")), Permits("Q", calls=calls)
    )

    assert ["R.reserve", "R.unreserve"] == calls[:2]
    assert "Q.permit" not in calls
    assert ("0/1 nodes are available: 1 p.", {"P"}) == (first_message(cluster), cluster.queued().rejectors)


async def test_5_3_2_and_11_7_1_a_later_rejection_beats_an_earlier_wait():
    """No pod waits."""
    cluster = await tried(waits("W1", 10), Permits("W2", unschedulable("no")))

    assert 0 == len(cluster.waiting_pods)
    assert {"W2"} == cluster.queued().rejectors


async def test_5_3_3_an_error_names_the_plugin():
    """Also one that answers what it must not."""
    cluster = await tried(Permits("P", failed("broken")))

    assert 'running Permit plugin "P": broken' == first_message(cluster)
    assert "error backoff" == cluster.where()


async def test_5_3_4_each_plugin_that_waits_has_its_own_time():
    """A quarter of an hour at most; the clocks start at once."""
    cluster = await tried(waits("W1", 10), Permits("Yes"), waits("W2", 10_000))
    waiting = cluster.waiting_pods.get("default-p0")

    assert ["W1", "W2"] == waiting.pending_plugins()
    assert {1010, 1900} == {timer.when() for timer in waiting._timers.values()}


async def test_5_3_5_waiting_is_a_success_for_the_cycle():
    """The point is reported as Wait, the pod stays assumed, the next one is scheduled."""
    cluster = await tried(waits())
    cluster.add_pod("p1")
    await cluster.run()

    assert ("assumed", "assumed") == (cluster.where("p0"), cluster.where("p1"))
    labels = {"extension_point": "Permit", "profile": "default-scheduler"}
    cluster.waiting_pods.get("default-p0").allow("Waits")
    cluster.waiting_pods.get("default-p1").allow("Waits")
    await cluster.run()
    assert 2 == cluster.metric("framework_extension_point_duration_seconds_count", status="Wait", **labels)


@pytest.mark.parametrize("permit", [None, waits()], ids=["success", "wait"])
async def test_5_3_6_pods_to_activate_are_activated_after_permit(permit):
    """Once, whether the pod goes on or waits."""

    class Activates(Reserves):
        def reserve(self, state, pod, node_name):
            if pod.name == "p0":
                state.pods_to_activate["default/other"] = cluster.pod("other")
            return super().reserve(state, pod, node_name)

    cluster = Cluster(Activates("A"), *([permit] if permit else []))
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod("other", priority=-1)
        record = cluster.queue._sub_queues.active.remove("default/other")
        record.unschedulable_plugins, record.unschedulable_count = {"A"}, 1
        cluster.queue._sub_queues.park(record, "test")
        cluster.add_pod("p0")
        await cluster.turn()

        assert "active" == cluster.where("other")
