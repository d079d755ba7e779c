"""The binding cycle and its failures (core 5.4, 5.7 to 5.10)."""

import pytest

from berth.client.errors import NotSentError, RejectedError
from berth.client.pods import Rejected
from berth.framework.status import SKIP, failed, unschedulable
from berth.objects.pods.pod import PodCondition
from tests.failures.reporting import reports
from tests.fakes import Binds, PostBinds, PreBinds, Reserves
from tests.scenarios.binding.plugins import Nothing, SlowPreBind, Waits, waits
from tests.scenarios.events.listening import Listening
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import QUEUE, Doorkeeper
from tests.unit.evaluation.points.test_extending import Extends
from tests.unit.queue.kit import NODE_ADD

EXPECTATION = "NominatedNodeNameForExpectation"
NO = Rejected(403, "no")


async def tried(*plugins, pod=None, **options):
    """One pod's attempt on one node."""
    cluster = Cluster(*plugins, **options)
    cluster.add_node()
    cluster.add_pod(**(pod or {}))
    await cluster.run()
    return cluster


def nominations(cluster):
    """What was written as nominatedNodeName, in order."""
    statuses = [call.what["status"] for call in cluster.calls("patch_status")]
    return [status["nominatedNodeName"] for status in statuses if "nominatedNodeName" in status]


# 5.4: the way.


@pytest.mark.parametrize(
    ("plugins", "written"),
    [
        pytest.param([PreBinds("Works")], ["n0"], id="work to do"),
        pytest.param([Nothing("Idle")], [], id="nothing to do"),
        pytest.param([], [], id="no PreBind plugin"),
    ],
)
async def test_5_4_1_and_5_9_1_work_before_the_binding_is_announced(plugins, written):
    """The node is written to the pod's status where PreBind will take its time."""
    cluster = await tried(*plugins)

    assert (written, {"p0": "n0"}) == (nominations(cluster), cluster.bound)


async def test_5_4_2_and_5_9_2_waiting_is_announced():
    """Without a condition."""
    cluster = await tried(waits())
    (call,) = cluster.calls("patch_status")

    assert ("assumed", "n0") == (cluster.where(), cluster.nomination())
    assert {"status": {"nominatedNodeName": "n0"}} == call.what


async def test_5_4_3_an_announcement_that_fails_is_logged(caplog):
    """The binding goes on."""
    cluster = Cluster(PreBinds("Works"))
    cluster.add_node()
    cluster.pods_client.answer_next("patch_status", RejectedError(422, "Invalid", "no"))
    cluster.add_pod()
    await cluster.run()

    assert {"p0": "n0"} == cluster.bound
    assert "nomination not written" in caplog.text


async def test_5_4_4_without_the_gate_nothing_is_announced():
    """Nor is any PreBind plugin asked beforehand, or left out."""
    idle = Nothing("Idle")
    cluster = await tried(idle, waits(), gates={EXPECTATION: False})
    announced = nominations(cluster)
    cluster.waiting_pods.get("default-p0").allow("Waits")
    await cluster.run()

    assert ([], ["Idle.pre_bind"]) == (announced, idle.calls)
    assert {"p0": "n0"} == cluster.bound


async def test_5_4_5_a_pod_waits_for_its_permission():
    """And is bound once it has it."""
    cluster = await tried(waits())
    await cluster.tick(5)
    before = cluster.bound
    cluster.waiting_pods.get("default-p0").allow("Waits")
    await cluster.run()

    assert ({}, {"p0": "n0"}) == (before, cluster.bound)


async def test_5_4_6_after_permission_no_event_is_kept_for_the_pod():
    """It is not in flight any longer, so a later failure is an error."""
    slow = SlowPreBind()
    cluster = await tried(slow, waits())
    waiting = list(cluster.queue.in_flight())
    cluster.waiting_pods.get("default-p0").allow("Waits")
    await cluster.run()

    assert (["default-p0"], []) == (waiting, list(cluster.queue.in_flight()))
    slow.finish()


async def test_5_4_7_the_pod_has_an_event_of_its_binding():
    """Attempts, the time since it was first ready, and an event."""
    cluster = await tried()

    assert [("Scheduled", "p0", "Successfully assigned default/p0 to n0")] == cluster.notes
    assert ["Binding"] == [action for *_, action, _ in cluster.recorder.events]
    assert 1 == cluster.metric("schedule_attempts_total", result="scheduled", profile=PROFILE)
    assert 1 == cluster.metric("pod_scheduling_attempts_count")
    assert 1 == cluster.metric("pod_scheduling_sli_duration_seconds_count", attempts="1")


async def test_5_4_8_many_attempts_share_a_label():
    """Fifteen and more."""
    door = Doorkeeper()
    cluster = Cluster(door)
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        for _ in range(15):
            await cluster.turn()
            cluster.queue.activate([cluster.pod()])
        door.open()
        await cluster.turn()

    assert 1 == cluster.metric("pod_scheduling_sli_duration_seconds_count", attempts="15+")
    assert 16 == cluster.metric("pod_scheduling_attempts_sum")


async def test_5_4_12_and_10_1_pods_that_only_a_flush_brought_back_are_counted():
    """What they waited for should have been an event: upstream means to count them, too."""
    door = Doorkeeper(hints={})
    cluster = await tried(door)
    door.open()
    await cluster.tick(331)

    assert {"p0": "n0"} == cluster.bound
    assert 1 == cluster.metric("pod_scheduled_after_flush_total")


async def test_5_4_9_bindings_at_work_are_counted():
    """For as long as they run."""
    slow = SlowPreBind()
    cluster = await tried(slow)
    during = cluster.metric("goroutines", operation="binding")
    slow.finish()
    await cluster.run()

    assert (1, 0) == (during, cluster.metric("goroutines", operation="binding"))


async def test_5_4_10_postbind_is_called_for_every_binding():
    """One that breaks does not matter to the others."""
    calls = []
    cluster = await tried(PostBinds("A", RuntimeError("broken"), calls), PostBinds("B", None, calls))

    assert ["A.post_bind", "B.post_bind"] == calls
    assert {"p0": "n0"} == cluster.bound


async def test_5_4_11_pods_to_activate_are_activated_after_the_binding():
    """What PreBind and PostBind plugins named."""

    class Activates(PreBinds):
        async def pre_bind(self, state, pod, node_name):
            state.pods_to_activate["default/other"] = cluster.pod("other")
            return await super().pre_bind(state, pod, node_name)

    door = Doorkeeper(hints={}, status={"other": unschedulable("no")})
    cluster = Cluster(door, Activates("Activates"))
    cluster.add_node()
    cluster.add_pod("other")
    await cluster.run()
    cluster.add_pod("p0")
    await cluster.run()

    assert ["other", "p0", "other"] == cluster.tried


# 5.7: Bind.


async def test_5_7_1_an_extender_binds_instead_of_plugins():
    """One that cares for the pod."""
    binds = Binds()
    cares = Extends("cares", bind=None)
    cluster = await tried(binds, extenders=[cares])

    assert ([("p0", "n0")], []) == (cares.asked, binds.calls)
    assert "Scheduled" == cluster.notes[0][0]


@pytest.mark.parametrize(("ignorable", "bound"), [(True, True), (False, False)])
async def test_5_7_2_an_extender_that_fails_to_bind(ignorable, bound):
    """If it is ignorable, another extender or plugin binds."""
    extender = Extends("e", ignorable=ignorable, bind=RuntimeError("away"))
    cluster = await tried(extenders=[extender])

    assert bound == ("p0" in cluster.bound)
    assert bound or "away" == cluster.condition().message


async def test_5_7_3_plugins_bind_in_order_until_one_does():
    """Those that pass on are skipped."""
    calls = []
    await tried(Binds("A", SKIP, calls), Binds("B", calls=calls), Binds("C", calls=calls))

    assert ["A.bind p0 to n0", "B.bind p0 to n0"] == calls


async def test_5_7_4_an_error_names_the_plugin():
    """And the pod backs off as after an error."""
    cluster = await tried(Binds("B", failed("broken")))

    assert 'running Bind plugin "B": broken' == cluster.condition().message
    assert "error backoff" == cluster.where()


async def test_5_7_5_the_binding_names_the_pods_uid():
    """A recreated pod of that name is not bound."""
    cluster = Cluster()
    cluster.add_node()
    cluster.pods_client.hold("bind")
    cluster.add_pod(uid="first")
    await cluster.run()
    cluster.watch.hold()
    cluster.delete_pod()
    cluster.add_pod(uid="second", scheduler_name="another")
    cluster.pods_client.release("bind")
    await cluster.run()

    assert {} == cluster.bound
    assert 1 == len(cluster.calls("bind"))


# 5.8: failures.


async def test_5_8_1_everything_is_undone():
    """Unreserve in reverse, then the cache forgets."""
    calls = []
    cluster = Cluster(Reserves("A", calls=calls), Reserves("B", calls=calls))
    cluster.add_node()
    cluster.pods_client.answer_next("bind", NO)
    cluster.add_pod()
    await cluster.run()

    assert ["A.reserve", "B.reserve", "B.unreserve", "A.unreserve"] == calls
    assert 0 == cluster.cache.pod_count()


async def test_5_8_2_a_pod_that_was_seen_bound_after_all_stays(caplog):
    """No hint is asked about its leaving."""
    listening = Listening(PreBinds("Works"))
    cluster = listening.cluster
    cluster.add_node()
    listening.door.open()
    cluster.pods_client.hold("bind")
    cluster.pods_client.answer_next("bind", NO)
    cluster.add_pod()
    await cluster.turn()
    cluster.change_pod(spec={"node_name": "n0"})
    listening.heard()
    cluster.pods_client.release("bind")
    await cluster.run()

    assert "placed" == cluster.where()
    assert "AssignedPodDelete" not in listening.heard()
    assert "assumed pod not forgotten" in caplog.text


async def failing(*plugins):
    """A binding that fails, and the pods that others hear of as leaving: assumed ones name their node."""
    listening = Listening(*plugins)
    cluster = listening.cluster
    listening.door.open()
    cluster.add_node()
    listening.heard()
    cluster.add_pod()
    await cluster.turn()
    return cluster, [e.old.node_name for e in listening.entries() if e.event.label == "AssignedPodDelete"]


@reports("pre-bind-fails", condition="`PodScheduled=False`: `SchedulerError`, with plugin and cause")
async def test_5_8_3_and_11_7_4_an_error_wakes_waiting_pods_before_the_pod_goes_back():
    """AssignedPodDelete, without restriction; then the condition says SchedulerError."""
    cluster, left = await failing(PreBinds("P", failed("broken")))

    assert ["n0"] == [node for node in left if node]
    assert ("PodScheduled", "False") == (cluster.condition().type, cluster.condition().status)
    assert ("SchedulerError", "error backoff") == (cluster.condition().reason, cluster.where())
    assert 'running PreBind plugin "P": broken' == cluster.condition().message
    assert "" == cluster.nomination()


async def test_5_8_4_and_11_7_5_a_rejection_notifies_the_others_afterwards():
    """The pod itself is left out; for the queue it is an error all the same."""
    cluster, left = await failing(PreBinds("P", unschedulable("not now")))

    assert ["n0"] == [node for node in left if node]
    assert ("Unschedulable", "not now") == (cluster.condition().reason, cluster.condition().message)
    assert ("error backoff", set()) == (cluster.where(), cluster.queued().rejectors)


async def test_5_8_5_and_11_7_6_who_was_waited_for_is_a_rejector():
    """Only Permit's rejections are those of a plugin: the pod waits in the pool for an event."""
    cluster = Cluster(Waits({NODE_ADD: QUEUE}))
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        cluster.waiting_pods.get("default-p0").reject("Waits", "changed my mind")
        await cluster.run()

        assert ("pool", {"Waits"}) == (cluster.where(), cluster.queued().rejectors)
        assert "0/1 nodes are available: 1 changed my mind." == cluster.condition().message


async def test_5_8_6_and_11_7_6_events_during_the_wait_count():
    """The pod was in flight until then: it backs off instead of waiting for an event."""
    cluster = Cluster(Waits({NODE_ADD: QUEUE}))
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        cluster.add_node("n1")
        cluster.waiting_pods.get("default-p0").reject("Waits", "changed my mind")
        await cluster.run()

        assert "backoff" == cluster.where()


# 5.9: nominations.


async def test_5_9_3_and_10_14_a_failed_binding_clears_what_the_watch_has_shown():
    """An announcement that the watch has yet to tell of is not cleared before the next attempt."""
    slow = SlowPreBind(status=failed("broken"))
    cluster = await tried(slow)
    shown = cluster.nomination()
    slow.finish()
    await cluster.run()

    assert ("n0", "") == (shown, cluster.nomination())


async def test_5_9_4_a_binding_clears_the_nomination():
    """The API server does, in the same step."""
    cluster = await tried(PreBinds("Works"))

    assert ("n0", "") == (nominations(cluster)[-1], cluster.nomination())


# 5.10: the status patch.


async def test_5_10_1_the_same_condition_is_not_written_twice():
    """Nothing but times would change."""
    cluster = await tried(Doorkeeper(hints={}))
    cluster.queue.activate([cluster.pod()])
    await cluster.tick(10)

    assert (2, 1) == (len(cluster.tried), len(cluster.calls("patch_status")))


async def test_5_10_2_the_transition_time_is_that_of_the_status():
    """Another message changes it not."""
    door = Doorkeeper(hints={})
    cluster = await tried(door)
    await cluster.tick(10)
    door.status = unschedulable("another reason")
    cluster.queue.activate([cluster.pod()])
    await cluster.run()
    condition = cluster.condition()

    assert "0/1 nodes are available: 1 another reason." == condition.message
    assert "1970-01-01T00:16:40Z" == condition.last_transition_time


async def test_5_10_3_a_patch_says_only_what_changes():
    """A nomination is part of it only where it differs."""
    cluster = await tried(Doorkeeper(hints={}), pod={"nominated_node_name": "n9"})
    (call,) = cluster.calls("patch_status")

    assert {"conditions", "nominatedNodeName"} == set(call.what["status"])
    assert None is call.what["status"]["nominatedNodeName"]


async def test_5_10_4_other_conditions_stay():
    """The patch merges by type."""
    cluster = Cluster(Doorkeeper(hints={}))
    cluster.add_node()
    cluster.add_pod(gates=["a"])
    conditions = (PodCondition(type="Ready", status="False"),)
    cluster.change_pod(status={"conditions": conditions}, spec={"scheduling_gates": ()})
    await cluster.run()

    assert {"Ready", "PodScheduled"} == {condition.type for condition in cluster.pod().status.conditions}


async def test_5_10_5_a_request_that_was_not_sent_costs_no_attempt():
    """The pod is back in the queue whatever became of its status."""
    cluster = Cluster(Doorkeeper(hints={}))
    cluster.add_node()
    cluster.pods_client.answer_next("patch_status", NotSentError("away"))
    cluster.add_pod()
    await cluster.run()

    assert ("pool", None) == (cluster.where(), cluster.condition())
