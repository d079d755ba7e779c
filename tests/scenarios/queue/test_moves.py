"""Ways between the places, and who is worth moving (core 2.7 to 2.9)."""

import pytest

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.status import unschedulable
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import PENDING, QUEUE, SKIP, Doorkeeper, Gate
from tests.unit.queue.kit import CLAIM_ADD, NODE_ADD, NODE_LABEL, NODE_TAINT

BROKEN = RuntimeError("broken")


def breaks(*_question):
    raise RuntimeError("the hint broke")


async def rejected(*plugins, pods=("p0",), pause=60):
    """Pods in the pool, rejected by these plugins, their backoff over by then."""
    cluster = Cluster(*plugins)
    cluster.add_node()
    for name in pods:
        cluster.add_pod(name)
    await cluster.run()
    await cluster.tick(pause)
    return cluster


def incoming(cluster, queue, event):
    return cluster.metric("queue_incoming_pods_total", queue=queue, event=event)


def worth(cluster, event, new):
    """What the event means for the pod that waits."""
    return cluster.queue._strategies.worth(cluster.queued(), event, None, new, []).value


# 2.7: moves.


async def test_2_7_1_into_activeq_a_pod_passes_its_gates():
    """A gated pod goes to the pool; a ready one gets the time of its first readiness and is counted."""
    gate = Gate("Gate", "p0", hints={NODE_ADD: QUEUE})
    cluster = Cluster(gate, Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        gated = cluster.queued().initial_attempt_timestamp
        await cluster.tick(5)
        gate.shut.clear()
        cluster.add_node()

        assert (None, 1005) == (gated, cluster.queued().initial_attempt_timestamp)
        assert (1, 1) == (
            incoming(cluster, "unschedulable", "UnschedulablePodAdd"),
            incoming(cluster, "active", "NodeAdd"),
        )


async def test_2_7_2_only_a_new_or_updated_pod_is_nominated_by_its_status():
    """Entering activeQ as an added or updated pod registers the nomination that its status carries."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod(nominated_node_name="n7")

        assert "n7" == cluster.queue.nominator.node_of(cluster.pod().uid)

        cluster.queue.nominator.delete(cluster.pod())
        cluster.queue.activate([cluster.pod()])

        assert "" == cluster.queue.nominator.node_of(cluster.pod().uid)


async def test_2_7_3_into_backoff_a_pod_passes_its_gates():
    """A pod that backs off leaves the pool; one that is gated stays in it."""
    gate = Gate()
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_node()
    async with cluster.paused():
        for name in ("p0", "p1"):
            cluster.add_pod(name)
            await cluster.turn()
        gate.shut.add("p1")
        cluster.add_node("n1")

        assert ("backoff", "gated") == (cluster.where("p0"), cluster.where("p1"))
        assert (0, 1, 0, 1) == tuple(cluster.queue.sizes())


async def test_2_7_4_the_pool_counts_a_pod_as_it_comes_in():
    """A pod that is there already, and only changes its gate, moves from one gauge to the other."""
    gate = Gate()
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    gate.shut.add("p0")
    before = incoming(cluster, "unschedulable", "ForceActivate")
    waiting = (
        cluster.metric("pending_pods", queue="unschedulable"),
        cluster.metric("pending_pods", queue="gated"),
    )
    cluster.queue.activate([cluster.pod()])
    gated = (
        cluster.metric("pending_pods", queue="unschedulable"),
        cluster.metric("pending_pods", queue="gated"),
    )

    assert ((1, 0), (0, 1)) == (waiting, gated)
    assert before == incoming(cluster, "unschedulable", "ForceActivate")


@pytest.mark.parametrize(("pause", "place"), [(0, "backoff"), (60, "active")])
async def test_2_7_5_and_2_7_6_after_backoff_means_the_rest_of_it(pause, place):
    """A pod that still backs off waits out the rest; one whose time is over is ready."""
    cluster = await rejected(Doorkeeper(), pause=pause)
    async with cluster.paused():
        cluster.add_node("n1")

        assert place == cluster.where()


async def test_2_7_7_immediately_skips_the_backoff():
    """What a plugin left pending is ready the moment that plugin says so."""
    cluster = await rejected(Doorkeeper(status=PENDING), pause=0)
    async with cluster.paused():
        cluster.add_node("n1")

        assert "active" == cluster.where()


async def test_2_7_8_skip_leaves_a_pod_in_the_pool():
    """A pod that no event helps stays."""
    cluster = await rejected(Doorkeeper(hints={NODE_ADD: SKIP}))
    cluster.add_node("n1")

    assert "pool" == cluster.where()


async def test_2_7_9_poppers_wake_for_activeq_and_backoffq():
    """An idle scheduler tries a pod at once that an event put into backoffQ."""
    cluster = await rejected(Doorkeeper(), pause=0)
    cluster.add_node("n1")
    await cluster.run()

    assert ["p0", "p0"] == cluster.tried
    assert [1000, 1000] == cluster.tried_at


# 2.8: worth.


async def test_2_8_1_without_rejectors_any_event_will_do():
    """A pod that only broke something is moved by whatever happens, after its backoff."""
    cluster = await rejected(Gate("Gate", "p0", hints={NODE_ADD: QUEUE}), Doorkeeper())
    async with cluster.paused():
        cluster.queued().unschedulable_plugins.clear()

        assert "after backoff" == worth(cluster, CLAIM_ADD, object())


async def test_2_8_2_a_wildcard_meant_for_another_pod_skips():
    """With a pod of another UID, or with what is no pod, it is another pod's."""
    cluster = await rejected(Doorkeeper())
    event = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
    answers = [worth(cluster, event, new) for new in (cluster.node(), None, cluster.pod())]

    assert ["skip", "after backoff", "after backoff"] == answers


async def test_2_8_3_without_a_profile_a_pod_is_moved(caplog):
    """A pod whose profile is gone is moved, and an error logged."""
    cluster = await rejected(Doorkeeper())
    cluster.queued().pod = cluster.add_pod("other", scheduler_name="gone")

    assert "after backoff" == worth(cluster, NODE_ADD, None)
    assert "no profile of that name" in caplog.text


async def test_2_8_4_only_rejectors_are_asked():
    """A plugin that let the pod pass has no say in when it comes back."""
    passes, shut = Doorkeeper("Passes"), Doorkeeper(hints={CLAIM_ADD: QUEUE})
    passes.open()
    cluster = await rejected(passes, shut)
    cluster.add_node("n1")

    assert [] == passes.heard
    assert "pool" == cluster.where()


async def test_2_8_5_a_hint_that_breaks_counts_as_queue(caplog):
    """It is logged, and timed as an error."""
    cluster = await rejected(Doorkeeper(hints={NODE_ADD: breaks}))
    async with cluster.paused():
        cluster.add_node("n1")

        assert "active" == cluster.where()
    assert "the hint broke" in caplog.text
    labels = {"plugin": "A", "event": "NodeAdd", "hint": "Error"}
    assert 1 == cluster.metric("queueing_hint_execution_duration_seconds_count", **labels)


@pytest.mark.parametrize(("answer", "text"), [(QUEUE, "Queue"), (SKIP, "QueueSkip")])
async def test_2_8_6_hints_are_timed_by_their_answer(answer, text):
    """The series carries the incoming event's label."""
    cluster = await rejected(Doorkeeper(hints={NODE_ADD: answer}))
    async with cluster.paused():
        cluster.add_node("n1")

    labels = {"plugin": "A", "event": "NodeAdd", "hint": text}
    assert 1 == cluster.metric("queueing_hint_execution_duration_seconds_count", **labels)


@pytest.mark.parametrize(
    ("rejecting", "pending", "place"),
    [
        pytest.param(QUEUE, SKIP, "backoff", id="one that rejected"),
        pytest.param(SKIP, QUEUE, "active", id="one that left it pending"),
        pytest.param(QUEUE, QUEUE, "active", id="both"),
        pytest.param(SKIP, SKIP, "pool", id="neither"),
    ],
)
async def test_2_8_7_and_2_8_8_and_11_3_4_the_best_answer_counts(rejecting, pending, place):
    """Immediately beats after backoff beats skip; not every rejector has to agree."""
    cluster = Cluster(
        Doorkeeper("A", hints={NODE_ADD: rejecting}),
        Doorkeeper("B", hints={NODE_ADD: pending}, status=PENDING),
    )
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        info = cluster.queue.pop()
        info.unschedulable_plugins, info.pending_plugins = {"A", "B"}, {"B"}
        cluster.queue.add_unschedulable_if_not_present(info)
        cluster.add_node("n1")

        assert place == cluster.where()


async def test_2_8_9_nothing_that_matches_means_skip():
    """An event that none of the rejectors registered leaves the pod."""
    cluster = await rejected(Doorkeeper(hints={CLAIM_ADD: QUEUE}), Doorkeeper("B", status=unschedulable()))
    cluster.add_node("n1")

    assert "pool" == cluster.where()


async def test_2_8_10_pending_plugins_are_rejectors_too():
    """A plugin that answered Pending is in both sets."""
    cluster = await rejected(Doorkeeper(status=PENDING))
    record = cluster.queued()

    assert ({"A"}, {"A"}) == (record.unschedulable_plugins, record.pending_plugins)


# 2.9: the move pass.


async def test_2_9_1_and_11_3_5_an_event_of_no_interest_leaves_no_trace():
    """No plugin registered it: no pod moves, and it is not kept for pods in flight."""
    cluster = Cluster(Doorkeeper(hints={CLAIM_ADD: QUEUE}))
    async with cluster.paused():
        cluster.add_pod()
        cluster.queue.pop()
        cluster.add_node()

        assert not cluster.metric("inflight_events", event="NodeAdd")
        assert 1 == cluster.metric("inflight_events", event="PodPopped")


async def test_2_9_2_a_predicate_restricts_the_candidates():
    """Losing a nomination is only news for pods of no higher priority."""
    assigned_delete = ClusterEvent(EventResource.POD, ActionType.DELETE)
    cluster = Cluster(Doorkeeper(hints={assigned_delete: QUEUE}))
    cluster.add_node()
    for name, priority in (("low", 1), ("equal", 5), ("high", 9)):
        cluster.add_pod(name, priority=priority)
    await cluster.run()
    await cluster.tick(60)
    async with cluster.paused():
        cluster.add_pod("nominated", priority=5, nominated_node_name="n0")
        cluster.delete_pod("nominated")

        assert {"low": "active", "equal": "active", "high": "pool"} == {
            name: cluster.where(name) for name in ("low", "equal", "high")
        }


async def test_2_9_3_a_gated_pod_is_passed_over_by_events_of_others():
    """Its other rejectors may say what they want."""
    gate = Gate()
    cluster = await rejected(gate, Doorkeeper(hints={NODE_LABEL: QUEUE}))
    gate.shut.add("p0")
    cluster.queue.activate([cluster.pod()])
    asked = len(gate.calls)
    cluster.change_node(labels={"a": "b"})

    assert ("gated", asked) == (cluster.where(), len(gate.calls))


async def test_2_9_4_what_is_not_worth_it_is_left_alone():
    """No count, no new time stamp."""
    cluster = await rejected(Doorkeeper(hints={NODE_ADD: SKIP}))
    before = incoming(cluster, "unschedulable", "NodeAdd"), cluster.queued().timestamp
    cluster.add_node("n1")

    assert before == (incoming(cluster, "unschedulable", "NodeAdd"), cluster.queued().timestamp)


async def test_2_9_5_the_event_is_kept_for_pods_in_flight():
    """Whatever the predicate, and counted by its label."""
    door = Doorkeeper(hints={NODE_ADD: QUEUE})
    cluster = Cluster(door)
    async with cluster.paused():
        cluster.add_pod()
        cluster.queue.pop()
        cluster.add_node()

        assert 1 == cluster.metric("inflight_events", event="NodeAdd")


async def test_2_9_6_pods_that_back_off_are_not_looked_at():
    """Only the pool is scanned."""
    door = Doorkeeper()
    cluster = await rejected(door, pause=0)
    async with cluster.paused():
        cluster.add_node("n1")
        heard = len(door.heard)
        cluster.add_node("n2")

        assert ("backoff", heard) == (cluster.where(), len(door.heard))


async def test_2_9_7_uncordoning_moves_by_the_taint_event():
    """A node that takes pods again stands for a taint that went."""
    cluster = Cluster(Doorkeeper(hints={NODE_TAINT: QUEUE}))
    cluster.add_node(unschedulable=True)
    cluster.add_pod()
    await cluster.run()
    await cluster.tick(60)
    async with cluster.paused():
        cluster.change_node(spec={"unschedulable": False})

        assert "active" == cluster.where()
