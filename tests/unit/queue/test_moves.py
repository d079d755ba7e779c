"""Core 2.7 and 2.9: the ways between the queue's places, and move passes."""

import pytest

from berth.framework.cluster_event import (
    FORCE_ACTIVATE,
    ActionType,
    ClusterEvent,
    ConcernedPods,
    EventResource,
    QueueingHint,
)
from tests.unit.queue.kit import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    Rejector,
    a_bench,
    a_pod,
    queue_it,
    skip_it,
)


def test_a_new_pod_becomes_active():
    """2.7: an ungated pod enters activeQ, which is counted, timed and given to the waiting pop."""
    bench = a_bench()
    pod = bench.add()

    assert bench.where(pod) == "active"
    assert bench.metrics.incoming == {("active", "UnschedulablePodAdd"): 1}
    assert bench.queue.record("default", "p0").initial_attempt_timestamp == bench.clock.seconds
    assert bench.woken == [bench.clock.seconds]
    assert bench.queue.ready()


def test_the_first_attempt_is_timed_once():
    """2.2: the instant of the first entry into activeQ never changes."""
    bench = a_bench()
    record = bench.pooled()
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "active"
    assert record.initial_attempt_timestamp == 1000.0


def test_an_event_moves_a_pod_whose_backoff_is_over():
    """2.7: AfterBackoff is activeQ once the backoff is over; counters and timestamp stay as they are."""
    bench = a_bench()
    record = bench.pooled()
    before = (record.timestamp, record.unschedulable_count, set(record.unschedulable_plugins))
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "active"
    assert before == (record.timestamp, record.unschedulable_count, record.unschedulable_plugins)
    assert bench.metrics.incoming["active", "NodeAdd"] == 1


def test_an_event_moves_a_pod_to_its_backoff():
    """2.7: AfterBackoff is backoffQ while the backoff lasts."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record, "A")
    bench.woken.clear()
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "normal"
    assert bench.metrics.incoming["backoff", "NodeAdd"] == 1
    assert bench.woken


def test_immediately_skips_the_backoff():
    """2.7: a pod that its pending plugin wants back goes straight to activeQ."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record, pending=["A"])
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "active"


def test_skip_leaves_everything_as_it_is():
    """2.9.3: a pod for which no hint says Queue stays, uncounted, and wakes no pop."""
    bench = a_bench([Rejector("A", {NODE_ADD: skip_it})])
    record = bench.pooled()
    bench.woken.clear()
    incoming = dict(bench.metrics.incoming)
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "pool"
    assert incoming == bench.metrics.incoming
    assert not bench.woken


def test_only_rejecting_plugins_are_asked():
    """2.8.4: no other plugin's hint is called, however many pods wait."""
    bench = a_bench([Rejector("A", {NODE_ADD: skip_it}), Rejector("B", {NODE_ADD: skip_it})])
    bench.pooled("p0", rejectors=["A"])
    bench.pooled("p1", rejectors=["A"])
    bench.pooled("p2", rejectors=["B"])
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.metrics.hints == {("A", "NodeAdd", "QueueSkip"): 2, ("B", "NodeAdd", "QueueSkip"): 1}


def test_an_event_that_no_plugin_waits_for():
    """2.9.1 and 11.3.5: it has no effect and is not recorded for pods in flight."""
    bench = a_bench()
    bench.popped("flying")
    bench.queue.move_all(CLAIM_ADD, None, None)

    assert not bench.queue._in_flight.events()


def test_an_event_is_recorded_for_pods_in_flight():
    """2.9.4: an event of interest is kept, whatever the predicate says; without pods in flight it is not."""
    bench = a_bench()
    bench.queue.move_all(NODE_ADD, None, None)
    assert not bench.queue._in_flight.events()
    bench.popped("flying")
    bench.queue.move_all(NODE_ADD, None, None, predicate=lambda _: False)

    assert bench.queue._in_flight.events() == [NODE_ADD]
    assert bench.metrics.in_flight == {"PodPopped": 1, "NodeAdd": 1}


def test_a_predicate_restricts_a_pass():
    """2.9.2: pods that it turns down are not looked at."""
    bench = a_bench()
    low, high = bench.pooled("low", priority=1), bench.pooled("high", priority=9)
    bench.queue.move_all(NODE_ADD, None, None, predicate=lambda pod: pod.priority <= 5)

    assert (bench.where(low.pod), bench.where(high.pod)) == ("active", "pool")


def test_a_pass_scans_the_pool_alone():
    """2.9: pods that back off are not affected by events."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record)
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "error"


def test_a_wildcard_reaches_pods_without_registrations():
    """2.9.1: a wildcard is of interest to all."""
    bench = a_bench()
    record = bench.pooled(rejectors=["Other"])
    bench.queue.move_all(FORCE_ACTIVATE, None, None)

    assert bench.where(record.pod) == "active"


def test_poppers_are_woken_once():
    """2.9.5: one pass wakes once, however many pods it moves."""
    bench = a_bench()
    for number in range(3):
        bench.pooled(f"p{number}")
    bench.woken.clear()
    bench.queue.move_all(NODE_ADD, None, None)

    assert len(bench.woken) == 1


def test_pods_of_another_profile():
    """2.8.3: each pod goes by its own profile's registrations."""
    bench = a_bench()
    record = bench.pooled(scheduler_name="unknown")
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "active"


def test_recreated_pods_share_a_slot():
    """2.1: a pod of the same name takes the place of the one before it."""
    bench = a_bench()
    bench.add(uid="first")
    bench.add(uid="second")

    assert bench.queue.sizes().active == 1
    assert bench.queue.pop().pod.uid == "second"


@pytest.mark.parametrize("label", ["NodeAdd", "NodeUpdateNodeLabel"])
def test_labels_of_moves(label):
    """2.7: arrivals are counted under the event's label."""
    bench = a_bench([Rejector("A", {NODE_ADD: queue_it, NODE_LABEL: queue_it})])
    bench.pooled()
    event = {event.label: event for event in (NODE_ADD, NODE_LABEL)}[label]
    bench.queue.move_all(event, None, None)

    assert bench.metrics.incoming["active", label] == 1


def test_a_regated_pod_arrives_in_the_pool_again():
    """2.7 and 2.9.3: a pass takes the pod out before it finds it gated, so its return is an arrival."""
    bench = a_bench()
    record = bench.pooled()
    record.pod = a_pod(gates=["Gates"])
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "pool"
    assert bench.metrics.incoming["unschedulable", "NodeAdd"] == 1
    assert (bench.queue.sizes().unschedulable, bench.queue.sizes().gated) == (0, 1)


def test_node_update_bits_match_one_by_one():
    """1.6: a registration of several actions is reached by each of them."""
    both = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    bench = a_bench([Rejector("A", {both: queue_it})])
    record = bench.pooled()
    bench.queue.move_all(NODE_LABEL, None, None)

    assert bench.where(record.pod) == "active"


class OfOnePod:
    """A hint that knows whom an event concerns: the pod of that name, and all with the label."""

    def __init__(self):
        self.asked = []

    def __call__(self, pod, *_objects):
        self.asked.append(pod.name)
        return QueueingHint.QUEUE

    def concerned(self, _old, new):
        return ConcernedPods(f"default/{new}", lambda template: new in template.labels)


def test_only_pods_that_an_event_concerns_are_asked_about():
    """All of them where one's template says so."""
    hint = OfOnePod()
    bench = a_bench([Rejector("A", {CLAIM_ADD: hint})])
    for i in range(4):
        bench.pooled(f"p{i}", requests={"cpu": f"{i + 1}"}, labels={"team": "x"} if i == 3 else {})
    bench.queue.move_all(CLAIM_ADD, None, "p1")
    assert ["p1"] == hint.asked
    bench.queue.move_all(CLAIM_ADD, None, "gone")
    assert ["p1"] == hint.asked
    bench.queue.move_all(CLAIM_ADD, None, "team")
    assert {"p0", "p2", "p3"} == set(hint.asked[1:])
