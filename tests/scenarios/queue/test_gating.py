"""PreEnqueue plugins that keep pods out (core 2.6)."""

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, SKIP, Doorkeeper, Gate
from tests.unit.queue.kit import CLAIM_ADD, NODE_ADD, NODE_LABEL, POD_LABEL

EVERYTHING = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


async def test_2_6_1_the_gate_that_held_a_pod_is_asked_first():
    """While it holds the pod, no other plugin is asked."""
    first, second = Gate("First"), Gate("Second", "p0", hints={NODE_ADD: QUEUE})
    cluster = Cluster(first, second, Doorkeeper())
    cluster.add_pod()
    del first.calls[:], second.calls[:]
    cluster.add_node()

    assert ([], ["Second.p0"]) == (first.calls, second.calls)
    assert "gated" == cluster.where()


async def test_2_6_2_all_other_gates_are_asked_after_it():
    """A pod that the first gate lets go may be held by another."""
    first, second = Gate("First", "p0", hints={NODE_ADD: QUEUE}), Gate("Second")
    cluster = Cluster(first, second, Doorkeeper())
    cluster.add_pod()
    first.shut, second.shut = set(), {"p0"}
    cluster.add_node()

    assert "Second" == cluster.queued().gating_plugin


async def test_2_6_3_any_status_but_success_holds_a_pod_back(caplog):
    """A gate that breaks holds its pod back, too, and is logged."""
    gate = Gate("Gate", "p0")
    gate.status = RuntimeError("broken")
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_pod()
    record = cluster.queued()

    assert ("gated", "Gate", {"Gate"}) == (
        cluster.where(),
        record.gating_plugin,
        record.unschedulable_plugins,
    )
    assert "broken" in caplog.text
    assert 1 == cluster.metric("unschedulable_pods", plugin="Gate", profile="default-scheduler")


async def test_2_6_4_a_pod_that_is_held_twice_counts_once():
    """A plugin that is among the rejectors already is not counted again."""
    cluster = Cluster(Gate("Gate", "p0", hints={NODE_ADD: QUEUE}), Doorkeeper())
    cluster.add_pod()
    cluster.add_node()
    cluster.add_node("n1")

    assert 1 == cluster.metric("unschedulable_pods", plugin="Gate", profile="default-scheduler")


async def test_2_6_5_passing_every_gate_keeps_the_rejectors():
    """A pod that is let in has no gating plugin, and the plugins that rejected it remain."""
    gate = Gate("Gate", "p0", hints={NODE_ADD: QUEUE})
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_pod()
    gate.shut.clear()
    async with cluster.paused():
        cluster.add_node()
        record = cluster.queued()

        assert ("active", "", {"Gate"}) == (
            cluster.where(),
            record.gating_plugin,
            record.unschedulable_plugins,
        )


async def test_2_6_6_an_event_of_the_gating_plugin_has_it_asked_again():
    """Only its own events, and only if its hint does not say no."""
    gate = Gate("Gate", "p0", hints={NODE_ADD: QUEUE, NODE_LABEL: SKIP})
    cluster = Cluster(gate, Doorkeeper(hints={CLAIM_ADD: QUEUE}))
    cluster.add_pod()
    cluster.add_node()
    asked = len(gate.calls)
    cluster.change_node(labels={"a": "b"})

    assert (2, asked) == (asked, len(gate.calls))


async def test_2_6_7_the_pods_own_update_has_it_asked_again():
    """Whatever events the gating plugin registered, the hints of all rejectors count for an update."""
    gate = Gate("Gate", "p0", hints={NODE_ADD: QUEUE})
    other = Gate("Other")
    cluster = Cluster(gate, Doorkeeper(hints={POD_LABEL: QUEUE}), other)
    cluster.add_pod()
    cluster.queued().unschedulable_plugins.add("A")
    gate.shut.clear()
    async with cluster.paused():
        cluster.change_pod(labels={"a": "b"})

        assert "active" == cluster.where()
        assert "Other.p0" in other.calls


async def test_2_6_8_activate_has_it_asked_again():
    """A pod that is still held stays, one that is not becomes ready."""
    gate = Gate("Gate", "p0")
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_pod()
    async with cluster.paused():
        cluster.queue.activate([cluster.pod()])
        held = cluster.where()
        gate.shut.clear()
        cluster.queue.activate([cluster.pod()])

        assert ("gated", "active") == (held, cluster.where())


async def test_2_6_9_popping_that_very_pod_has_it_asked_again():
    """A pod group's cycle takes a member only past its gates."""
    gate = Gate("Gate", "p0")
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_pod()
    async with cluster.paused():
        held = cluster.queue.pop_specific(cluster.pod())
        gate.shut.clear()
        taken = cluster.queue.pop_specific(cluster.pod())

        assert None is held
        assert "p0" == taken.pod.name


async def test_2_6_10_and_11_3_8_the_flush_asks_the_gates_again():
    """PreEnqueue runs again every five minutes; a pod that is still gated has no mark of the flush."""
    gate = Gate("Gate", "p0")
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_pod()
    del gate.calls[:]
    await cluster.tick(360)

    assert (["Gate.p0"], "gated") == (gate.calls, cluster.where())
    assert not cluster.queued().was_flushed_from_unschedulable

    gate.shut.clear()
    await cluster.tick(240)

    assert [] == cluster.tried

    await cluster.tick(120)

    assert "p0" in cluster.tried


async def test_2_6_11_a_gate_that_waits_for_everything_is_asked_by_the_flush():
    """A wildcard matches the events of a plugin that registered the wildcard."""
    gate = Gate("Gate", "p0", hints={EVERYTHING: QUEUE})
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_pod()
    gate.shut.clear()
    await cluster.tick(360)

    assert "p0" in cluster.tried


async def test_2_6_12_gates_are_asked_on_the_way_into_backoff_and_not_out_of_it():
    """A pod that may not be queued does not back off; the flush of backoffQ asks no plugin."""
    gate = Gate()
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_node()
    async with cluster.paused():
        for name in ("p0", "p1"):
            cluster.add_pod(name)
            await cluster.turn()
        gate.shut.add("p0")
        cluster.add_node("n1")
        asked = len(gate.calls)
        gate.shut.add("p1")
        await cluster.tick(2)
        cluster.queue.flush_backoff()

        assert ("gated", "active") == (cluster.where("p0"), cluster.where("p1"))
        assert asked == len(gate.calls)


async def test_2_6_13_and_10_2_the_point_is_timed_as_a_success():
    """The histogram says Success whatever the gates said."""
    cluster = Cluster(Gate("Gate", "p0"), Doorkeeper())
    cluster.add_pod()
    labels = {"extension_point": "PreEnqueue", "status": "Success", "profile": "default-scheduler"}

    assert 1 == cluster.metric("framework_extension_point_duration_seconds_count", **labels)


async def test_2_6_14_one_run_of_ten_times_each_plugin():
    """By what it really said."""
    cluster = Cluster(Gate("Opens"), Gate("Gate", *[f"p{number}" for number in range(20)]), Doorkeeper())
    for number in range(20):
        cluster.add_pod(f"p{number}")
    point = {"extension_point": "PreEnqueue"}
    name = "plugin_execution_duration_seconds_count"

    assert 2 == cluster.metric(name, plugin="Opens", status="Success", **point)
    assert 2 == cluster.metric(name, plugin="Gate", status="UnschedulableAndUnresolvable", **point)
