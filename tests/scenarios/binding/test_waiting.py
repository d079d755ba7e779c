"""Pods that wait for permission, and pods whose PreBind plugins work (core 5.5, 5.6)."""

import pytest

from berth.framework.status import failed, unschedulable
from tests.fakes import PreBinds
from tests.scenarios.binding.plugins import Nothing, SlowPreBind, waits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE

TIMED_OUT = "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin W1."


async def tried(*plugins, **options):
    """One pod's attempt on one node."""
    cluster = Cluster(*plugins, **options)
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    return cluster


def waiting(cluster):
    return cluster.waiting_pods.get("default-p0")


# 5.5: waiting.


async def test_5_5_1_one_map_holds_the_waiting_pods_of_all_profiles():
    """By UID; plugins of any profile find them."""
    cluster = Cluster(profiles={PROFILE: [waits("W")], "other": [waits("V")]})
    cluster.add_node()
    cluster.add_pod("p0")
    cluster.add_pod("p1", scheduler_name="other")
    await cluster.run()

    assert {"p0", "p1"} == {waiting.pod.name for waiting in cluster.core.handles[PROFILE].waiting_pods}


async def test_5_5_2_and_11_7_2_all_plugins_have_to_allow():
    """The last one lets the pod go."""
    cluster = await tried(waits("W1"), waits("W2"))
    waiting(cluster).allow("W1")
    await cluster.run()
    still = waiting(cluster).pending_plugins()
    waiting(cluster).allow("W2")
    await cluster.run()

    assert (["W2"], {"p0": "n0"}) == (still, cluster.bound)


async def test_5_5_3_and_11_7_2_one_rejection_is_enough():
    """By whom it was."""
    cluster = await tried(waits("W1"), waits("W2"))
    waiting(cluster).allow("W1")
    waiting(cluster).reject("W2", "no")
    await cluster.run()

    assert ("W2", "0/1 nodes are available: 1 no.") == (
        cluster.records[0].status.plugin,
        cluster.records[0].status.message,
    )


async def test_5_5_4_the_first_outcome_counts():
    """Later ones take no effect, and say so."""
    cluster = await tried(waits("W"))
    one = waiting(cluster)

    assert [True, False, False] == [one.reject("W", "no"), one.reject("W", "again"), one.preempt("X", "late")]


async def test_5_5_5_and_11_7_3_time_that_is_up_is_a_rejection():
    """To the second, by the plugin whose time it was."""
    cluster = await tried(waits("W1", 10), waits("W2", 20))
    await cluster.tick(9.9)
    before = len(cluster.records)
    await cluster.tick(0.1)

    assert (0, TIMED_OUT, "W1") == (
        before,
        cluster.records[0].status.message,
        cluster.records[0].status.plugin,
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(900, "15m0s"), (1.5, "1.5s"), (0.3, "300ms"), (3600, "15m0s")]
)
async def test_5_5_6_durations_are_written_as_go_writes_them(seconds, text):
    """And never longer than a quarter of an hour."""
    cluster = await tried(waits("W", seconds))
    await cluster.tick(min(seconds, 900))

    assert f"rejected due to timeout after waiting {text} at plugin W" in cluster.records[0].status.message


async def test_5_5_7_an_outcome_may_come_before_anybody_waits():
    """It is kept until the binding cycle asks."""
    early = Nothing("Early")
    early.before = lambda: waiting(cluster).allow("W")
    cluster = Cluster(waits("W"), early)
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert {"p0": "n0"} == cluster.bound


async def test_5_5_8_a_pod_is_in_the_map_until_its_binding_goes_on():
    """Allowed, and still to be seen."""
    cluster = await tried(waits("W"))
    waiting(cluster).allow("W")
    seen = waiting(cluster) is not None
    await cluster.run()

    assert (True, None) == (seen, waiting(cluster))


async def test_5_5_9_waiting_is_timed_for_pods_that_waited():
    """By the name of the outcome."""
    cluster = await tried(waits("W"))
    waiting(cluster).allow("W")
    await cluster.run()
    calm = await tried()

    assert 1 == cluster.metric("permit_wait_duration_seconds_count", result="Success")
    assert 0 == calm.metric("permit_wait_duration_seconds_count", result="Success")


async def test_5_5_10_and_11_7_7_a_preempted_pod_has_an_error():
    """SchedulerError, and the backoff of one."""
    cluster = await tried(waits("W"))
    waiting(cluster).preempt("DefaultPreemption", "preempted")
    await cluster.run()

    assert ("SchedulerError", "error backoff") == (cluster.condition().reason, cluster.where())
    assert "waiting on permit for pod: preempted" == cluster.condition().message


async def test_5_5_11_and_10_15_a_waiting_pod_whose_deletion_begins_is_rejected():
    """As removed, by no plugin."""
    cluster = await tried(waits("W"))
    cluster.mark_deleted()
    await cluster.run()
    status = cluster.records[0].status

    assert ("0/1 nodes are available: 1 removed.", "") == (status.message, status.plugin)
    assert 0 == cluster.cache.assumed_count()


async def test_5_5_12_allowing_an_unknown_plugin_changes_nothing():
    """As long as another plugin is waited for."""
    cluster = await tried(waits("W"))
    waiting(cluster).allow("Other")
    await cluster.run()

    assert ({}, ["W"]) == (cluster.bound, waiting(cluster).pending_plugins())


# 5.6: PreFlight and PreBind.


async def test_5_6_1_a_plugin_that_has_nothing_to_do_is_left_out():
    """The others run."""
    idle, works = Nothing("Idle"), PreBinds("Works")
    cluster = await tried(idle, works)

    assert (["Idle.pre_flight"], ["Works.pre_bind"], {"p0": "n0"}) == (idle.calls, works.calls, cluster.bound)


async def test_5_6_2_an_error_beforehand_names_the_plugin():
    """Nothing was done yet."""
    works = PreBinds("Works")
    cluster = await tried(PreBinds("P", flight=failed("broken")), works)

    assert 'running PreBindPreFlight "P": broken' == cluster.condition().message
    assert [] == works.calls


async def test_5_6_3_any_other_answer_is_not_supported():
    """The text says what is."""
    cluster = await tried(PreBinds("P", flight=unschedulable("no")))

    assert (
        'PreBindPreFlight P returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    ) == cluster.condition().message


@pytest.mark.parametrize(
    ("plan", "groups"),
    [
        ("P1 P2 S3 P4", [["P1", "P2"], ["S3"], ["P4"]]),
        ("P1 s2 P3", [["P1"], ["P3"]]),
        ("P1 p2 P3", [["P1", "P3"]]),
    ],
)
async def test_5_6_4_plugins_that_may_run_side_by_side_do(plan, groups):
    """Consecutive ones; a serial plugin ends a group even where it has nothing to do."""
    begun = []
    plugins = []
    for name in plan.split():
        kind = SlowPreBind if name[0].isupper() else Nothing
        plugins.append(kind(name.upper(), parallel=name[0] in "Pp", calls=begun))
    cluster = await tried(*plugins)
    seen = []
    while "p0" not in cluster.bound:
        now = [call.split(".")[0] for call in begun if call.endswith("pre_bind")]
        seen.append(now)
        begun[:] = [call for call in begun if not call.endswith("pre_bind")]
        for plugin in plugins:
            if plugin.name in now:
                plugin.finish()
        await cluster.run()

    assert groups == seen


async def test_5_6_5_the_first_failure_cancels_the_rest_of_its_group():
    """Later groups do not begin."""
    fails = SlowPreBind("Fails", failed("broken"), parallel=True)
    slow, later = SlowPreBind("Slow", parallel=True), PreBinds("Later")
    cluster = await tried(slow, fails, later)
    fails.finish()
    await cluster.run()

    assert ("cancelled", []) == (slow.ended, later.calls)
    assert 'running PreBind plugin "Fails": broken' == cluster.condition().message


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (unschedulable("not now"), "not now", "Unschedulable"),
        (failed("broken"), 'running PreBind plugin "P": broken', "SchedulerError"),
    ],
)
async def test_5_6_6_a_failure_is_a_rejection_or_an_error(status, message, reason):
    """As the plugin has it."""
    cluster = await tried(PreBinds("P", status))

    assert (message, reason) == (cluster.condition().message, cluster.condition().reason)


async def test_5_6_7_and_11_7_8_a_preempted_binding_ends_with_the_cause():
    """Whatever its plugins were at; a second cancellation returns that it is cancelled."""
    slow = SlowPreBind()
    cluster = await tried(slow)
    at_work = cluster.core.handles[PROFILE].pods_in_pre_bind.get("default-p0")
    answers = [at_work.cancel("preempted by DefaultPreemption"), at_work.cancel("again")]
    await cluster.run()

    assert ([True, True], "cancelled", {}) == (answers, slow.ended, cluster.bound)
    assert "preempted by DefaultPreemption" in cluster.records[0].status.message


async def test_5_6_8_and_11_7_8_once_prebind_is_over_it_is_too_late():
    """Who wants the pod gone has to delete it."""
    cluster = Cluster(PreBinds("P"))
    cluster.add_node()
    cluster.pods_client.hold("bind")
    cluster.add_pod()
    await cluster.run()
    in_pre_bind = cluster.core.handles[PROFILE].pods_in_pre_bind.get("default-p0")

    assert not in_pre_bind.cancel("preempted by DefaultPreemption")
    cluster.pods_client.release("bind")
    await cluster.run()
    assert {"p0": "n0"} == cluster.bound


async def test_5_6_9_a_pod_without_prebind_work_cannot_be_stopped():
    """It is in no map."""
    cluster = Cluster()
    cluster.add_node()
    cluster.pods_client.hold("bind")
    cluster.add_pod()
    await cluster.run()

    assert None is cluster.core.handles[PROFILE].pods_in_pre_bind.get("default-p0")
