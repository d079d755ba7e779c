"""Writes that are merged, replaced and dropped on their way (core 5.11)."""

import asyncio

import pytest
from msgspec.structs import replace

from berth.binding.api_call import ApiCall, CallType
from berth.client.pods import Rejected
from berth.framework.status import unschedulable
from berth.objects.pods.pod import PodCondition
from tests.fakes import PostFilters, PreBinds
from tests.scenarios.binding.plugins import waits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import Doorkeeper

ASYNC = {"SchedulerAsyncAPICalls": True}
CONDITION = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no")
EXECUTED = "async_api_call_execution_total"
PENDING = "pending_async_api_calls"


class Calls:
    """A dispatcher with an API server whose calls hang until they are released."""

    def __init__(self):
        self.cluster = Cluster(Doorkeeper(hints={}), gates=ASYNC)
        self.cluster._pause = True
        self.pod = self.cluster.add_pod()
        self.dispatcher = self.cluster.core.dispatcher

    def hold(self):
        for verb in ("patch_status", "bind"):
            self.cluster.pods_client.hold(verb)

    async def release(self):
        for verb in ("patch_status", "bind"):
            self.cluster.pods_client.release(verb)
        await self.cluster.run()

    def patch(self, condition=None, nominated=None, pod=None):
        """Add a status patch; gives it."""
        return self._added(
            ApiCall(CallType.STATUS_PATCH, pod or self.pod, ReportedStatus(), condition, nominated)
        )

    def bind(self, node="n0"):
        """Add a binding; gives it."""
        return self._added(ApiCall(CallType.BINDING, self.pod, ReportedStatus(), node_name=node))

    def _added(self, call):
        self.dispatcher.add(call)
        return call

    def sent(self):
        """What reached the API server, in order."""
        return [(call.verb, call.what) for call in self.cluster.api.calls]


class ReportedStatus:
    """An outcome that can be looked at."""

    def __init__(self):
        self.future = asyncio.get_running_loop().create_future()

    def set(self, value):
        if self.future.done():
            return False
        self.future.set_result(value)
        return True

    def __await__(self):
        return self.future.__await__()

    @property
    def text(self):
        """What was reported: nothing yet, success, or words."""
        if not self.future.done():
            return None
        return str(self.future.result() or "success")


async def test_5_11_1_bindings_are_more_relevant_than_patches():
    """A patch that comes after a binding is skipped."""
    calls = Calls()
    binding, patch = calls.bind(), calls.patch(CONDITION)
    await calls.cluster.run()

    assert "a more relevant call is already enqueued for this object: call skipped" == patch.outcome.text
    assert ([("bind", "n0")], "success") == (calls.sent(), binding.outcome.text)


async def test_5_11_2_and_10_16_a_binding_takes_the_place_of_a_patch():
    """What waits for the patch is notified, unless it is being made already."""
    calls = Calls()
    patch = calls.patch(CONDITION)
    calls.bind()
    await calls.cluster.run()

    assert "a more relevant call was enqueued for this object: call overwritten" == patch.outcome.text
    assert [("bind", "n0")] == calls.sent()


async def test_5_11_3_a_binding_waits_for_the_patch_that_is_being_made():
    """One call for a pod at a time; the newer one runs after the older."""
    calls = Calls()
    calls.hold()
    patch = calls.patch(CONDITION)
    await calls.cluster.run()
    calls.bind()
    await calls.cluster.run()
    before = [verb for verb, _ in calls.sent()]
    await calls.release()

    assert ["patch_status"] == before
    assert (["patch_status", "bind"], "success") == ([verb for verb, _ in calls.sent()], patch.outcome.text)


async def test_5_11_4_patches_are_merged():
    """The newer one says what the older would have, unless it says otherwise."""
    calls = Calls()
    older, newer = calls.patch(CONDITION, "n1"), calls.patch(None, None)
    calls.patch(None, "n2")
    await calls.cluster.run()
    (call,) = calls.sent()

    assert "a call of the same type was enqueued for this object: call overwritten" == older.outcome.text
    assert older.outcome.text == newer.outcome.text
    assert ("no", "n2") == (calls.cluster.condition().message, calls.cluster.nomination())
    assert "patch_status" == call[0]


async def test_5_11_5_and_10_16_a_merge_notifies_even_the_patch_that_is_being_made():
    """It is superseded by what follows it."""
    calls = Calls()
    calls.hold()
    older = calls.patch(CONDITION)
    await calls.cluster.run()
    calls.patch(replace(CONDITION, message="other"))

    assert "a call of the same type was enqueued for this object: call overwritten" == older.outcome.text
    await calls.release()
    assert "other" == calls.cluster.condition().message
    assert 2 == len(calls.sent())


async def test_5_11_6_a_call_without_effect_is_not_made():
    """And what was stored for the pod is dropped with it."""
    calls = Calls()
    calls.patch(None, "n1")
    nothing = calls.patch(None, "")
    await calls.cluster.run()

    assert "call does not need to be executed because it has no effect: call skipped" == nothing.outcome.text
    assert ([], 0) == (calls.sent(), calls.cluster.metric(PENDING, call_type="pod_status_patch"))


async def test_5_11_7_pods_take_their_turns():
    """First come, first served, and side by side."""
    calls = Calls()
    others = [calls.cluster.add_pod(f"p{number}") for number in range(1, 4)]
    calls.hold()
    for pod in others:
        calls.patch(CONDITION, pod=pod)
    await calls.cluster.run()

    assert ["default/p1", "default/p2", "default/p3"] == [call.pod for call in calls.cluster.api.calls]
    await calls.release()


async def test_5_11_8_the_watch_makes_calls_superfluous():
    """What a pod has by now need not be written; a call that is being made goes on."""
    calls = Calls()
    patch = calls.patch(None, "n1")
    calls.cluster.change_pod(status={"nominated_node_name": "n1"})
    await calls.cluster.run()

    assert (
        "call does not need to be executed because after sync it has no effect: call skipped"
    ) == patch.outcome.text
    assert [] == calls.sent()


async def test_5_11_9_a_newer_version_is_what_calls_are_compared_to():
    """Something else changed: the call is made."""
    calls = Calls()
    calls.patch(None, "n1")
    calls.cluster.change_pod(labels={"a": "b"})
    await calls.cluster.run()

    assert ("n1", {"a": "b"}) == (calls.cluster.nomination(), calls.cluster.pod().labels)


async def test_5_11_10_skipped_and_overwritten_count_as_success():
    """Who waits for such a call goes on."""
    calls = Calls()
    first = asyncio.create_task(calls.dispatcher.patch_pod_status(calls.pod, CONDITION, None))
    second = []
    calls.dispatcher.bind(calls.pod, "n0", second.append)
    third = asyncio.create_task(calls.dispatcher.patch_pod_status(calls.pod, CONDITION, None))
    await calls.cluster.run()

    assert [None, None, None] == [first.result(), *second, third.result()]


async def test_5_11_11_a_failure_goes_to_the_caller():
    """Undone and reported like any other failed binding."""
    cluster = Cluster(gates=ASYNC)
    cluster.add_node()
    cluster.pods_client.answer_next("bind", Rejected(403, "forbidden"))
    cluster.add_pod()
    await cluster.run()

    assert ("error backoff", 'running Bind plugin "DefaultBinder": forbidden') == (
        cluster.where(),
        cluster.condition().message,
    )


async def test_5_11_12_calls_are_counted_and_timed():
    """By type and result; those that wait, by type. Without the gate there are no such series."""
    cluster = Cluster(PreBinds("Works"), gates=ASYNC)
    cluster.add_node()
    cluster.pods_client.hold("patch_status")
    cluster.add_pod()
    await cluster.run()
    pending = cluster.metric(PENDING, call_type="pod_status_patch")
    cluster.pods_client.release("patch_status")
    await cluster.run()

    assert (1, 0) == (pending, cluster.metric(PENDING, call_type="pod_status_patch"))
    assert 1 == cluster.metric(EXECUTED, call_type="pod_status_patch", result="success")
    assert 1 == cluster.metric(EXECUTED, call_type="pod_binding", result="success")
    assert EXECUTED not in Cluster().metrics.text().decode()


@pytest.mark.parametrize("gates", [{}, ASYNC], ids=["at once", "through the dispatcher"])
async def test_5_11_13_the_outcome_is_the_same_with_and_without_it(gates):
    """Pods that wait, that fail and that fit."""
    cluster = Cluster(
        waits("W", 30),
        Doorkeeper(hints={}, status={"unfit": unschedulable("no")}),
        PostFilters("Keeps", unschedulable("kept")),
        gates=gates,
    )
    cluster.add_node()
    for name in ("unfit", "allowed", "late"):
        cluster.add_pod(name)
    await cluster.run()
    cluster.waiting_pods.get("default-allowed").allow("W")
    await cluster.tick(30)

    assert {"allowed": "n0"} == cluster.bound
    assert ("pool", "Unschedulable") == (cluster.where("unfit"), cluster.condition("unfit").reason)
    assert "waiting 30s at plugin W" in cluster.condition("late").message
