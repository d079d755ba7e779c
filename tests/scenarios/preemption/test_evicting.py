"""Victims on their way out, and the preemptor meanwhile (core 6.6, 11.8)."""

import asyncio

from berth.client.errors import NotFoundError
from berth.framework.interface import PreBindPlugin, PreFlightResult
from tests.fakes import Named, Permits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, WAIT, Doorkeeper
from tests.scenarios.preemption.stage import HIGH, LOW, MIDDLE, arrives, crowded, evicted, message_of, place
from tests.unit.queue.kit import NODE_ADD

SYNCHRONOUS = {"SchedulerAsyncPreemption": False}
REFUSED = OSError("refused")
IN_MEMORY = " (in kube-scheduler memory)."


def preempted(cluster):
    """The notes of the events that tell pods of their preemption, by pod."""
    return {pod: note for reason, pod, note in cluster.notes if reason == "Preempted"}


def statuses_written(cluster, name):
    """The status patches of that pod, in order."""
    return [call.what["status"] for call in cluster.calls("patch_status") if call.pod == f"default/{name}"]


def two_on_a_node(**options):
    """One node whose pods both have to go for four CPUs."""
    cluster = crowded(**options)
    place(cluster, "first", cpu="2", priority=MIDDLE)
    place(cluster, "last", cpu="2", priority=LOW)
    return cluster


class Slow(Named, PreBindPlugin):
    """Prepares for ever."""

    def pre_bind_pre_flight(self, *_):
        return PreFlightResult()

    async def pre_bind(self, *_):
        await asyncio.Event().wait()


async def on_its_way(plugin):
    """A victim that this plugin keeps from its node, and the preemptor's cycle."""
    cluster = Cluster(plugin, "NodeResourcesFit", "DefaultPreemption")
    cluster.add_node(cpu="4")
    cluster.add_pod("low", cpu="4", priority=LOW)
    await cluster.run()
    async with cluster.paused():
        cluster.add_pod("high", cpu="4", priority=HIGH)
        await cluster.turn()
    return cluster


async def test_6_6_1_a_waiting_victim_is_turned_down_without_a_call():
    """It is tried again as after an error; the event says that nothing else happened."""
    cluster = await on_its_way(Permits("Waits", WAIT, 600))

    assert [] == evicted(cluster) == statuses_disrupted(cluster, "low")
    assert {"low": f"Preempted by pod {cluster.pod('high').uid} on node n0{IN_MEMORY}"} == preempted(cluster)
    assert ["low", "high"] == cluster.tried[:2]
    assert ("error backoff", "assumed") == (cluster.where("low"), cluster.where("high"))


def statuses_disrupted(cluster, name):
    """The DisruptionTarget conditions that were written to that pod."""
    written = [one for status in statuses_written(cluster, name) for one in status.get("conditions", ())]
    return [condition for condition in written if condition["type"] == "DisruptionTarget"]


async def test_6_6_2_a_victim_in_pre_bind_is_stopped_without_a_call():
    """As one that waits for permission."""
    cluster = await on_its_way(Slow("Slow"))

    assert [] == evicted(cluster) == statuses_disrupted(cluster, "low")
    assert preempted(cluster)["low"].endswith(IN_MEMORY)
    assert ("error backoff", "assumed") == (cluster.where("low"), cluster.where("high"))


async def test_6_6_3_else_a_condition_and_a_deletion():
    """The condition first, in the name of the preemptor's scheduler."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster)
    about_low = [call.verb for call in cluster.api.calls if call.pod == "default/low"]
    (condition,) = statuses_disrupted(cluster, "low")

    assert ["patch_status", "delete"] == about_low
    assert ("True", "PreemptionByScheduler") == (condition["status"], condition["reason"])
    expected = "default-scheduler: preempting to accommodate a higher priority pod"
    assert expected == condition["message"]


async def test_6_6_3_a_victim_that_is_gone_is_done_with():
    """No event, and no failure: the preemptor keeps its nomination."""
    cluster = crowded()
    place(cluster, "low")
    cluster.pods_client.answer_next("delete", NotFoundError(404, "NotFound", "gone"))
    await arrives(cluster)

    assert ({}, "n0") == (preempted(cluster), cluster.nomination("high"))
    assert cluster.tried == ["high"]


async def test_6_6_4_an_event_on_the_victim():
    """It names the preemptor's UID and the node, and relates to the preemptor."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster)
    related = [pod.name for pod in cluster.recorder.related if pod is not None]

    assert {"low": f"Preempted by pod {cluster.pod('high').uid} on node n0"} == preempted(cluster)
    assert ["high"] == related


async def test_6_6_5_where_all_victims_leave_already_nothing_is_done():
    """The node is nominated all the same."""
    cluster = crowded()
    place(cluster, "leaving")
    cluster.mark_deleted("leaving")
    await arrives(cluster)

    assert ([], "n0") == (evicted(cluster), cluster.nomination("high"))
    assert cluster.metric("preemption_victims_count") == 0


async def test_6_6_6_all_victims_are_counted():
    """Those that leave already, too."""
    cluster = two_on_a_node()
    cluster.mark_deleted("first")
    await arrives(cluster)

    assert ["last"] == evicted(cluster)
    assert cluster.metric("preemption_victims_sum") == 2


async def with_a_lower_nomination(**options):
    """`lower` was promised what `last` holds; then a pod comes that wants the whole node."""
    cluster = two_on_a_node(**options)
    await arrives(cluster, "lower", cpu="2", priority=MIDDLE + 1)
    assert "n0" == cluster.nomination("lower")
    for name, priority in (("equal", MIDDLE + 1), ("between", MIDDLE + 2)):
        cluster.add_pod(name, cpu="4", priority=priority, preemption_policy="Never")
    await cluster.tick(20)
    return cluster


async def test_6_6_7_and_11_8_8_a_lower_nomination_is_taken_back_first():
    """Before anybody is evicted; the pods that it held off are tried again, but for more important ones."""
    cluster = await with_a_lower_nomination()
    known, tried = len(cluster.api.calls), len(cluster.tried)
    await arrives(cluster)
    calls = [(call.verb, call.pod) for call in cluster.api.calls[known:]]

    assert "" == cluster.nomination("lower")
    assert calls.index(("patch_status", "default/lower")) < calls.index(("delete", "default/first"))
    assert {"high", "lower", "equal"} == set(cluster.tried[tried:])


async def three_victims(cluster):
    """A preemptor whose three victims are about to be deleted; the calls hang."""
    for name, priority in (("a", 30), ("b", 20), ("c", 10)):
        place(cluster, name, cpu="1", priority=priority)
    cluster.pods_client.hold("delete")
    cluster.add_pod("high", cpu="4", priority=HIGH)
    await cluster.turn()


async def test_6_6_8_and_6_6_9_and_11_8_6_the_last_victim_goes_once_the_others_have():
    """Two at once, the third after both."""
    cluster = crowded()
    async with cluster.paused():
        await three_victims(cluster)
        at_first = evicted(cluster)
        cluster.pods_client.release("delete")
        await cluster.run()

        assert (["a", "b"], ["a", "b", "c"]) == (at_first, evicted(cluster))


async def test_6_6_8_and_6_6_10_and_11_8_6_an_error_spares_the_last_and_brings_the_preemptor_back():
    """It is in activeQ at once, whatever its backoff."""
    cluster = crowded()
    cluster.pods_client.answer_next("delete", REFUSED, lands=False)
    async with cluster.paused():
        await three_victims(cluster)
        waits = cluster.where("high")
        cluster.pods_client.release("delete")
        await cluster.run()

        assert ("pool", "active") == (waits, cluster.where("high"))
        assert ["a", "b"] == evicted(cluster)


async def test_6_6_11_the_cycle_does_not_wait():
    """While a deletion hangs the nomination is written and others are scheduled."""
    cluster = crowded(2)
    place(cluster, "low")
    place(cluster, "equal", "n1", cpu="3", priority=HIGH)
    cluster.pods_client.hold("delete")
    await arrives(cluster)
    cluster.add_pod("small", cpu="1")
    await cluster.run()

    assert ("n0", "n1") == (cluster.nomination("high"), cluster.bound["small"])


async def test_6_6_12_and_11_8_7_the_gate_opens_when_the_last_victim_is_seen_to_leave():
    """Though the API server has not answered yet: the watch was faster."""
    cluster = two_on_a_node()
    async with cluster.paused():
        cluster.pods_client.hold("delete")
        cluster.add_pod("high", cpu="4", priority=HIGH)
        await cluster.turn()
        cluster.queue.activate([cluster.pod("high")])
        while_first = cluster.where("high")
        cluster.pods_client.release("delete")
        cluster.pods_client.hold("delete")
        await cluster.run()
        cluster.queue.activate([cluster.pod("high")])
        while_last = cluster.where("high")
        cluster.mark_deleted("last")
        cluster.queue.activate([cluster.pod("high")])

        assert ("gated", "gated", "active") == (while_first, while_last, cluster.where("high"))
        assert ["first", "last"] == evicted(cluster)


async def test_6_6_13_a_deletion_alone_brings_no_pod_back():
    """The plugin that rejected the pod did not ask for it."""
    cluster = Cluster(Doorkeeper(hints={NODE_ADD: QUEUE}), "DefaultPreemption")
    cluster.add_node()
    place(cluster, "low")
    await arrives(cluster)
    cluster.delete_pod("low")
    await cluster.tick(60)

    assert ["high"] == cluster.tried


async def test_6_6_14_a_preemptors_life():
    """One attempt that evicts, one when the victim is gone; nothing in between, and no flush."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster)
    await cluster.tick(90)

    assert ({"high": "n0"}, ["high", "high"]) == (cluster.bound, cluster.tried)
    assert [1000, 1060] == cluster.tried_at
    assert [] == list(cluster.queue.nominator.nodes_with_nominations())
    assert cluster.metric("pod_scheduled_after_flush_total") == 0


async def test_6_6_15_synchronous_evictions_end_with_the_cycle():
    """All victims at once, then the lower nomination; the preemptor is not gated."""
    cluster = await with_a_lower_nomination(gates=SYNCHRONOUS)
    known = len(cluster.api.calls)
    await arrives(cluster)
    calls = [(call.verb, call.pod) for call in cluster.api.calls[known:]]

    assert calls.index(("delete", "default/first")) < calls.index(("patch_status", "default/lower"))
    assert ("pool", "n0") == (cluster.where("high"), cluster.nomination("high"))


async def test_6_2_7_and_6_6_15_a_failed_synchronous_eviction_fails_the_attempt():
    """There is no result: no pod is nominated, and no nomination taken back."""
    cluster = two_on_a_node(gates=SYNCHRONOUS)
    cluster.pods_client.answer_next("delete", REFUSED, lands=False)
    async with cluster.paused():
        cluster.add_pod("high", cpu="4", priority=HIGH)
        await cluster.turn()

        assert ("refused", "") == (message_of(cluster), cluster.nomination("high"))


async def two_preemptors_of_one_victim():
    """Both want half of a node that one pod fills; its deletion hangs."""
    cluster = crowded()
    place(cluster, "low")
    cluster.pods_client.hold("delete")
    await arrives(cluster, "first", cpu="2")
    await arrives(cluster, "second", cpu="2")
    return cluster


async def test_a_victim_whose_eviction_is_under_way_is_not_evicted_again():
    """The second preemptor counts on the first one's eviction; both are bound once the victim is gone."""
    cluster = await two_preemptors_of_one_victim()
    cluster.pods_client.release("delete")
    await cluster.tick(90)

    assert (["low"], {"low": preempted(cluster)["low"]}) == (evicted(cluster), preempted(cluster))
    assert 1 == sum(reason == "Preempted" for reason, *_ in cluster.notes)
    assert {"first", "second"} == set(cluster.bound)


async def test_an_eviction_that_fails_has_all_that_counted_on_it_tried_again():
    """Neither waits for an event that never comes."""
    cluster = await two_preemptors_of_one_victim()
    cluster.pods_client.answer_next("delete", REFUSED)
    cluster.pods_client.release("delete")
    await cluster.tick(90)

    assert ["low", "low"] == evicted(cluster)
    assert {"first", "second"} == set(cluster.bound)
