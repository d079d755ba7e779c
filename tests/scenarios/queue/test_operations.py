"""Pods come, change and go, and are asked for (core 2.13)."""

import pytest

from berth.framework.status import unschedulable
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, SKIP, Doorkeeper, Gate
from tests.unit.queue.kit import NODE_ADD, POD_LABEL

BROKEN = RuntimeError("broken")
HELD = {"plugin": "A", "profile": "default-scheduler"}
BOTH = {POD_LABEL: QUEUE, NODE_ADD: QUEUE}
GATED = ("example.com/gate",)


async def waiting(place, door, *others):
    """A paused cluster whose only pod is there."""
    cluster = Cluster(door, *others)
    cluster.add_node()
    cluster._pause = True
    door.status = BROKEN if place == "error backoff" else unschedulable("no")
    cluster.add_pod()
    if place != "active":
        await cluster.turn()
    if place == "backoff":
        cluster.add_node("n1")
    assert place == cluster.where()
    return cluster


# Add.


async def test_2_13_1_a_new_pod_is_ready():
    """Its time is now, no plugin rejected it, and it counts as UnschedulablePodAdd."""
    cluster = await waiting("active", Doorkeeper())
    record = cluster.queued()

    assert (1000, 0, set()) == (record.timestamp, record.attempts, record.rejectors)
    assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event="UnschedulablePodAdd")


async def test_2_13_2_adding_a_pod_again_replaces_it():
    """One entry for each namespace and name."""
    cluster = await waiting("active", Doorkeeper())
    cluster.queue.add(cluster.pod())

    assert 1 == cluster.queue.sizes().active


# Update.


async def test_2_13_3_an_update_in_flight_is_an_event():
    """The record keeps the old pod; each event of the update is kept, wanted or not."""
    cluster = await waiting("active", Doorkeeper(hints={NODE_ADD: QUEUE}))
    info = cluster.queue.pop()
    cluster.change_pod(labels={"a": "b"})

    assert {} == info.pod.labels
    assert 1 == cluster.metric("inflight_events", event="UnschedulablePodUpdatePodLabel")


async def test_2_13_4_an_update_in_activeq_restores_the_order():
    """The pod is replaced in place: no gate is asked, no time changes."""
    gate = Gate()
    cluster = await waiting("active", Doorkeeper(), gate)
    cluster.add_pod("p1", priority=1)
    await cluster.tick(3)
    asked = len(gate.calls)
    cluster.change_pod("p0", spec={"priority": 9})

    assert (asked, 1000) == (len(gate.calls), cluster.queued("p0").timestamp)
    assert ["p0", "p1"] == [await cluster.turn(), await cluster.turn()]


@pytest.mark.parametrize("place", ["backoff", "error backoff"])
async def test_2_13_5_and_11_3_11_an_update_does_not_end_a_backoff(place):
    """Even one that takes away what the pod was rejected for."""
    cluster = await waiting(place, Doorkeeper(hints=BOTH))
    cluster.change_pod(labels={"a": "b"})

    assert place == cluster.where()
    assert {"a": "b"} == cluster.queued().pod.labels


async def test_2_13_6_an_update_in_the_pool_asks_the_rejectors():
    """The first of its events that brings the pod out ends the search."""
    cluster = await waiting("pool", Doorkeeper(hints=BOTH))
    await cluster.tick(60)
    cluster.change_pod(labels={"a": "b"})

    assert "active" == cluster.where()
    label = "UnschedulablePodUpdatePodLabel"
    assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event=label)


async def test_2_13_7_an_update_that_helps_no_plugin_leaves_the_pod_in_the_pool():
    """The record has the new pod all the same."""
    cluster = await waiting("pool", Doorkeeper(hints={POD_LABEL: SKIP}))
    cluster.change_pod(labels={"a": "b"})

    assert ("pool", {"a": "b"}) == (cluster.where(), cluster.queued().pod.labels)


async def test_2_13_8_an_update_in_the_pool_passes_the_gates():
    """What the hints would move is asked about by PreEnqueue again."""
    gate = Gate()
    cluster = await waiting("pool", Doorkeeper(hints=BOTH), gate)
    gate.shut.add("p0")
    cluster.change_pod(labels={"a": "b"})

    assert "gated" == cluster.where()


async def test_2_13_9_an_update_of_an_unknown_pod_adds_it():
    """It counts as UnschedulablePodUpdate."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        pod = cluster.add_pod()
        cluster.queue.delete(pod)
        cluster.change_pod(labels={"a": "b"})

        assert "active" == cluster.where()
    assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event="UnschedulablePodUpdate")


async def test_2_13_10_the_last_gate_that_goes_lets_a_pod_in():
    """Upstream's own gates, through the update of the pod; one of two is not enough."""
    cluster = Cluster("SchedulingGates", Doorkeeper())
    cluster.add_pod(gates=["a", "b"])
    gates = cluster.pod().spec.scheduling_gates
    async with cluster.paused():
        cluster.change_pod(spec={"scheduling_gates": gates[1:]})
        held = cluster.where()
        cluster.change_pod(spec={"scheduling_gates": ()})

        assert ("gated", "active") == (held, cluster.where())


# Delete.


@pytest.mark.parametrize("place", ["active", "backoff", "error backoff", "pool"])
async def test_2_13_11_and_10_3_a_deleted_pod_leaves_its_place(place):
    """Wherever it waits, its nomination and its share of the rejectors' gauges go with it."""
    cluster = await waiting(place, Doorkeeper())
    pod = cluster.pod()
    cluster.delete_pod()

    assert None is cluster.queued()
    assert "" == cluster.queue.nominator.node_of(pod.uid)
    assert 0 == cluster.metric("unschedulable_pods", **HELD)


async def test_2_13_12_deletion_leaves_what_is_in_flight():
    """The attempt ends by itself; then the pod is not put back."""
    door = Doorkeeper()
    cluster = Cluster(door)
    cluster.add_node()
    door.during = lambda _: cluster.delete_pod()
    cluster.add_pod()
    await cluster.run()

    assert None is cluster.queued()
    assert [] == list(cluster.queue.in_flight())


# Activate.


@pytest.mark.parametrize(
    ("place", "asked"), [("pool", 1), ("backoff", 0), ("error backoff", 0)], ids=["pool", "backoff", "error"]
)
async def test_2_13_13_activation_ignores_the_backoff(place, asked):
    """From the pool the gates are asked, from backoff they were."""
    gate = Gate()
    cluster = await waiting(place, Doorkeeper(), gate)
    before = len(gate.calls)
    cluster.queue.activate([cluster.pod()])

    assert ("active", asked) == (cluster.where(), len(gate.calls) - before)
    assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event="ForceActivate")


async def test_2_13_14_activation_of_a_pod_in_flight_is_an_event():
    """It is kept for the pod; of a pod that is nowhere, it is nothing."""
    cluster = await waiting("active", Doorkeeper())
    cluster.queue.pop()
    cluster.queue.activate([cluster.pod()])
    in_flight = cluster.metric("inflight_events", event="ForceActivate")
    stranger = cluster.add_pod("stranger", scheduler_name="other")
    cluster.queue.activate([stranger])

    assert (1, 1) == (in_flight, cluster.metric("inflight_events", event="ForceActivate"))


# That very pod.


@pytest.mark.parametrize("place", ["active", "backoff", "error backoff", "pool"])
async def test_2_13_15_a_certain_pod_can_be_popped(place):
    """Wherever it waits, whatever its backoff; it is in flight then."""
    cluster = await waiting(place, Doorkeeper())
    attempts = cluster.queued().attempts
    info = cluster.queue.pop_specific(cluster.pod())

    assert attempts + 1 == info.attempts
    assert [info.pod.uid] == list(cluster.queue.in_flight())


async def test_2_13_16_a_pod_that_does_not_wait_cannot_be_popped():
    """Popped meanwhile, or unknown."""
    cluster = await waiting("active", Doorkeeper())
    cluster.queue.pop()

    assert None is cluster.queue.pop_specific(cluster.pod())


# Close, pending pods.


async def test_2_13_17_closing_ends_all_flights():
    """Nothing is in flight any longer, and pops that wait return."""
    cluster = await waiting("active", Doorkeeper())
    cluster.queue.pop()
    cluster.pod_ready.clear()
    cluster.queue.close()

    assert ([], True) == (list(cluster.queue.in_flight()), cluster.pod_ready.is_set())


async def test_2_13_18_pending_pods_are_listed_with_a_summary():
    """All that wait, gated ones included."""
    cluster = await waiting("backoff", Doorkeeper(), Gate("Gate", "kept"))
    cluster.add_pod("kept")
    cluster.add_pod("ready")
    pods, summary = cluster.queue.pending_pods()

    assert {"p0", "kept", "ready"} == {pod.name for pod in pods}
    assert "activeQ:1; backoffQ:1; unschedulablePods:1" == summary
