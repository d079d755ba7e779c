"""The frame of a scheduling cycle (core 4.1 to 4.3)."""

from berth.framework.status import SUCCESS, unschedulable
from tests.fakes import PostFilters, PreFilters, Scores
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import Doorkeeper

ALGORITHM = "scheduling_algorithm_duration_seconds_count"


async def test_4_1_1_cycles_run_one_after_another():
    """A pod is popped once the cycle before it has ended, binding or not."""
    door, order = Doorkeeper(), []
    door.open()
    door.during = lambda pod: order.append((pod.name, sorted(cluster.queue.in_flight())))
    cluster = Cluster(door)
    cluster.add_node()
    cluster.pods_client.hold("bind")
    for name in ("p0", "p1"):
        cluster.add_pod(name)
    await cluster.run()

    assert ["p0", "p1"] == [name for name, _ in order]
    assert {"p0": "assumed", "p1": "assumed"} == {name: cluster.where(name) for name in ("p0", "p1")}


async def test_4_1_2_a_pod_whose_profile_is_gone_is_dropped(caplog):
    """Logged, and in flight no longer."""
    cluster = Cluster()
    cluster.add_node()
    cluster.queue.add(cluster.add_pod(scheduler_name="gone"))
    await cluster.run()

    assert ("nowhere", []) == (cluster.where(), list(cluster.queue.in_flight()))
    assert "no profile" in caplog.text


async def test_4_1_3_each_profile_has_its_own_plugins():
    """One process, several of them."""
    door = Doorkeeper()
    cluster = Cluster(profiles={PROFILE: [door], "open": [Scores("S", {"n1": 9})]})
    cluster.add_node("n0")
    cluster.add_node("n1")
    cluster.add_pod("p0")
    cluster.add_pod("p1", scheduler_name="open")
    await cluster.run()

    assert {"p1": "n1"} == cluster.bound


async def test_4_1_4_pods_to_activate_are_activated_after_the_cycle():
    """A plugin names them while a pod is scheduled; they wait no longer."""

    class Activates(PreFilters):
        def pre_filter(self, state, pod, nodes):
            if cluster.queued("waits") is not None and pod.name == "p1":
                state.pods_to_activate["default/waits"] = cluster.pod("waits")
            return super().pre_filter(state, pod, nodes)

    door = Doorkeeper(hints={}, status={"waits": unschedulable("no")})
    cluster = Cluster(Activates("Activates"), door)
    cluster.add_node()
    cluster.add_pod("waits")
    await cluster.run()
    cluster.add_pod("p1")
    await cluster.run()

    assert ["waits", "p1", "waits"] == cluster.tried


async def test_4_2_1_a_pod_that_is_being_deleted_is_skipped():
    """Its owner gets an event; it is not put back."""
    cluster = Cluster(Doorkeeper())
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        cluster.mark_deleted()
        await cluster.turn()

        assert [("FailedScheduling", "p0", "skip schedule deleting pod: default/p0")] == cluster.notes
        assert ("nowhere", []) == (cluster.where(), list(cluster.queue.in_flight()))
        assert [] == cluster.calls("patch_status")


async def test_4_2_2_an_assumed_pod_is_skipped_silently():
    """It came into the queue although it is on its way."""
    cluster = Cluster()
    cluster.add_node()
    cluster.pods_client.hold("bind")
    cluster.add_pod()
    await cluster.run()
    cluster.queue.add(cluster.pod())
    await cluster.run()

    assert (["p0", "p0"], []) == (cluster.tried, cluster.notes)
    assert "assumed" == cluster.where()
    assert 1 == len(cluster.calls("bind"))


async def test_4_3_1_and_11_6_1_without_nodes_no_plugin_is_asked():
    """The condition says unschedulable, the queue treats it as an error; no plugin is asked to make room."""
    room = PostFilters("Room", SUCCESS)
    cluster = Cluster(Doorkeeper(), room)
    cluster.add_pod(nominated_node_name="n0")
    await cluster.run()
    condition = cluster.condition()

    assert ("False", "Unschedulable", "no nodes available to schedule pods") == (
        condition.status,
        condition.reason,
        condition.message,
    )
    assert ("error backoff", [], "") == (cluster.where(), room.calls, cluster.nomination())


async def test_4_3_2_a_pod_that_fits_nowhere_gets_a_fit_error_and_postfilter():
    """Both have their say in the message."""
    room = PostFilters("Room", unschedulable("no room"))
    cluster = Cluster(Doorkeeper(), room)
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert ["Room.post_filter"] == room.calls
    assert "0/1 nodes are available: 1 A is shut. no room" == cluster.condition().message


async def test_4_3_3_a_single_feasible_node_is_taken_without_scoring():
    """One node fits: nothing to compare."""
    scores = Scores("S", {"n0": 1})
    cluster = Cluster("NodeResourcesFit", scores)
    cluster.add_node("n0", cpu="1")
    cluster.add_node("n1", cpu="4")
    cluster.add_pod(cpu="2")
    await cluster.run()

    assert ({"p0": "n1"}, []) == (cluster.bound, scores.calls)
    assert (1, 2) == (cluster.records[0].feasible_count, cluster.records[0].evaluated_count)


async def test_4_3_4_several_feasible_nodes_are_compared():
    """Scored, and the best is taken."""
    cluster = Cluster(Scores("S", {"n0": 1, "n1": 7, "n2": 3}))
    for name in ("n0", "n1", "n2"):
        cluster.add_node(name)
    cluster.add_pod()
    await cluster.run()

    assert {"p0": "n1"} == cluster.bound
    assert 3 == cluster.records[0].feasible_count


async def test_4_3_5_the_algorithm_is_timed_whatever_comes_of_it():
    """Once for each attempt."""
    door = Doorkeeper(status={"bad": RuntimeError("broken"), "unfit": unschedulable("no")})
    cluster = Cluster(door)
    cluster.add_node()
    for name in ("bad", "unfit", "fine"):
        cluster.add_pod(name)
    await cluster.run()

    assert 3 == cluster.metric(ALGORITHM)
    assert {"error": 1, "unschedulable": 1, "scheduled": 1} == {
        result: cluster.metric("schedule_attempts_total", result=result, profile=PROFILE)
        for result in ("error", "unschedulable", "scheduled")
    }
