"""Core 2.6: PreEnqueue plugins keep pods in the pool."""

import logging

import pytest

from berth.config.releases.release import RELEASES
from berth.config.releases.rules import RULES
from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.interface import PreEnqueuePlugin
from berth.framework.queueing.object_events import UNSPLIT
from berth.framework.status import failed
from tests.failures.reporting import reports
from tests.unit.queue.kit import (
    GATES_GONE,
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Gates,
    Rejector,
    a_bench,
    a_pod,
    queue_it,
    skip_it,
)


def test_a_gated_pod_waits_in_the_pool():
    """2.6.3: the record names the plugin, its events, and counts it among the rejectors."""
    bench = a_bench()
    pod = bench.add(gates=["Gates"])
    record = bench.queue.record("default", "p0")

    assert bench.where(pod) == "pool"
    assert record.gated
    assert (record.gating_plugin, record.gating_plugin_events) == ("Gates", (GATES_GONE,))
    assert record.unschedulable_plugins == {"Gates"}
    assert record.initial_attempt_timestamp is None
    assert bench.queue.sizes().gated == 1
    assert bench.metrics.rejected["Gates", PROFILE] == 1
    assert not bench.queue.ready()


def test_events_that_cannot_open_a_gate_pass_over_it():
    """A gated pod is not asked about an event that its plugin registers for pods that it rejects later."""
    gate = Gates(events=(GATES_GONE, NODE_ADD), later=(NODE_ADD,))
    bench = a_bench([gate])
    pod = bench.add(gates=["Gates"])
    bench.queue.move_all(NODE_ADD, None, None)
    passed_over = gate.asked
    bench.queue.move_all(GATES_GONE, None, None)

    assert (1, 2) == (passed_over, gate.asked)
    assert bench.where(pod) == "pool"


def test_the_gating_plugin_is_asked_first():
    """2.6.1: the plugin that gated the pod runs first, and its answer is enough while it says no."""
    one, other = Gates("One"), Gates("Other")
    bench = a_bench([one, other])
    pod = bench.add(gates=["Other"])
    bench.queue.activate([pod])

    assert (one.asked, other.asked) == (1, 2)
    assert bench.metrics.rejected["Other", PROFILE] == 1


def test_a_passed_gate_leaves_its_name_among_the_rejectors():
    """2.6.4: once all plugins pass the pod is not gated any longer; who rejected it stays known."""
    bench = a_bench()
    old = bench.add(gates=["Gates"])
    bench.update(old, a_pod())
    record = bench.queue.record("default", "p0")

    assert bench.where(old) == "active"
    assert not record.gated
    assert record.unschedulable_plugins == {"Gates"}
    assert record.initial_attempt_timestamp == bench.clock.seconds


class Broken(PreEnqueuePlugin):
    """A gate that cannot answer, one way or the other."""

    def __init__(self, answer):
        self._answer = answer

    def pre_enqueue(self, pod):
        del pod
        return self._answer()


@reports("pre-enqueue-fails", log="`PreEnqueue failed, the pod is held back`, with plugin, pod and cause")
@pytest.mark.parametrize("answer", [lambda: failed("no connection"), lambda: 1 / 0])
def test_an_error_gates_too(answer, caplog):
    """2.6.3: an error holds the pod back as a rejection does, and is logged."""
    bench = a_bench([Broken(answer)])
    with caplog.at_level(logging.ERROR):
        pod = bench.add()

    assert bench.where(pod) == "pool"
    assert bench.queue.record("default", "p0").gating_plugin == "Broken"
    assert "PreEnqueue failed, the pod is held back" in caplog.text


def test_only_the_gating_plugins_events_reach_a_gated_pod():
    """2.6 and 2.9.3: another rejector's event does not move a gated pod, nor is anybody asked."""
    bench = a_bench([Rejector("A", {NODE_ADD: queue_it}), Gates()])
    record = bench.pooled(rejectors=["A"])
    old = record.pod
    record.pod = a_pod(gates=["Gates"])
    bench.queue.activate([old])
    assert record.unschedulable_plugins == {"A", "Gates"}
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(old) == "pool"
    assert not bench.metrics.hints


@pytest.mark.parametrize(("hint", "asked"), [(skip_it, 1), (queue_it, 2)])
def test_a_matching_event_has_the_gate_checked_again(hint, asked):
    """2.6: an event of the gating plugin runs PreEnqueue again unless the hint says Skip."""
    gates = Gates(events=[NODE_LABEL], hint=hint)
    bench = a_bench([gates])
    pod = bench.add(gates=["Gates"])
    bench.queue.move_all(NODE_LABEL, None, None)

    assert asked == gates.asked
    assert bench.where(pod) == "pool"


def test_own_update_does_not_ask_for_the_gating_events():
    """2.6: an update of the pod itself goes by hints alone."""
    everything = ClusterEvent(EventResource.POD, ActionType.ALL)
    bench = a_bench([Rejector("A", {everything: queue_it}), Gates(events=[NODE_LABEL])])
    old = bench.add(gates=["Gates", "x"])
    record = bench.queue.record("default", "p0")
    record.unschedulable_plugins.add("A")
    bench.update(old, a_pod(gates=["x"]))

    assert bench.where(old) == "active"


@pytest.mark.parametrize("release", RELEASES)
def test_a_nomination_of_a_gated_pod(release):
    """kubernetes/kubernetes#139057: from 1.37 on it counts; before, once the pod may be tried."""
    nominates = RULES[release].gated_pods_are_nominated
    bench = a_bench(nominates_gated=nominates)
    pod = bench.add(gates=["Gates"], nominated_node_name="n1")

    assert nominates == (release != (1, 36))
    assert ("n1" if nominates else "") == bench.queue.nominator.node_of(pod.uid)


def test_activating_a_gated_pod_checks_the_gate():
    """2.6: Activate asks again and leaves a pod that is still gated where it is."""
    bench = a_bench()
    pod = bench.add(gates=["Gates"])
    bench.queue.activate([pod])

    assert bench.where(pod) == "pool"
    assert bench.metrics.incoming == {("unschedulable", "UnschedulablePodAdd"): 1}


def test_the_flush_asks_the_gates_of_a_gated_pod():
    """11.3.8: six minutes in the pool, the flush runs PreEnqueue again; a pod still gated is not marked."""
    gates = Gates()
    bench = a_bench([gates])
    pod = bench.add(gates=["Gates"])
    bench.clock.seconds += 360
    bench.queue.flush_unschedulable_leftovers()

    assert (2, "pool") == (gates.asked, bench.where(pod))
    assert not bench.queue.record("default", "p0").was_flushed_from_unschedulable


def test_a_wildcard_registration_lets_the_flush_through():
    """2.6: a gating plugin that waits for everything is asked at the flush."""
    gates = Gates(events=[ClusterEvent(EventResource.WILDCARD, ActionType.ALL)])
    bench = a_bench([gates])
    bench.add(gates=["Gates"])
    bench.clock.seconds += 360
    bench.queue.flush_unschedulable_leftovers()

    assert gates.asked == 2


def test_siblings_of_a_new_pod_are_looked_at_again():
    """1.12 and 2.6: a gate that waits for pods sees the one that was just added."""
    gates = Gates(events=[ClusterEvent(EventResource.POD, ActionType.ADD)])
    bench = a_bench([gates])
    bench.add(gates=["Gates"])
    bench.queue.move_all(UNSPLIT.add, None, a_pod("sibling"))

    assert gates.asked == 2


def test_backoff_checks_gates():
    """2.6 and 2.7: with SchedulerPopFromBackoffQ the gate stands before backoffQ, and not behind it."""
    gates = Gates()
    bench = a_bench([Rejector("A", {NODE_ADD: queue_it}), gates])
    record = bench.popped()
    bench.fail(record)
    assert (bench.where(record.pod), gates.asked) == ("error", 2)
    bench.clock.seconds += 10
    bench.queue.flush()

    assert (bench.where(record.pod), gates.asked) == ("active", 2)


def test_without_the_feature_gate_activeq_checks():
    """2.6 and 2.7: without SchedulerPopFromBackoffQ the gate stands before activeQ only."""
    gates = Gates()
    bench = a_bench([gates], pop_from_backoff=False)
    record = bench.popped()
    bench.fail(record)
    assert (bench.where(record.pod), gates.asked) == ("error", 1)
    record.pod = a_pod(gates=["Gates"])
    bench.clock.seconds += 10
    bench.queue.flush()

    assert (bench.where(record.pod), gates.asked) == ("pool", 2)
