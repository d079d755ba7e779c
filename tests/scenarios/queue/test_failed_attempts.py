"""A pod comes back from an attempt that failed (core 2.12)."""

import pytest

from berth.framework.status import unschedulable
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.queue.errors import AlreadyQueuedError
from berth.queue.requeueing.requeue_strategy import RequeueStrategy
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import PENDING, QUEUE, SKIP, Doorkeeper
from tests.unit.queue.kit import CLAIM_ADD, NODE_ADD, NODE_LABEL

BROKEN = RuntimeError("broken")
BY_PLUGIN = {"plugin": "A", "profile": "default-scheduler"}


def flying(*plugins, **fields):
    """A cluster, and its pod in flight."""
    cluster = Cluster(*plugins)
    cluster.add_pod(**fields)
    return cluster, cluster.queue.pop()


def fails(cluster, info, *rejectors, pending=()):
    info.unschedulable_plugins, info.pending_plugins = {*rejectors, *pending}, set(pending)
    cluster.queue.add_unschedulable_if_not_present(info)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("pool", "Pod default/p0 is already present in unschedulable queue"),
        ("active", "Pod default/p0 is already present in the active queue"),
        ("backoff", "Pod default/p0 is already present in the backoff queue"),
    ],
)
async def test_2_12_1_a_pod_that_is_queued_already_is_refused(place, text):
    """Nothing changes but that it is in flight no longer."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        cluster.queue.add(cluster.pod())
        if place != "active":
            again = cluster.queue._sub_queues.active.pop()
            again.unschedulable_plugins, again.unschedulable_count = {"A"}, 1
            strategy = RequeueStrategy.SKIP if place == "pool" else RequeueStrategy.AFTER_BACKOFF
            cluster.queue._sub_queues.requeue(again, strategy, "NodeAdd")

        with pytest.raises(AlreadyQueuedError, match=text):
            fails(cluster, info, "A")

        assert (place, 0) == (cluster.where(), info.unschedulable_count)
        assert [] == list(cluster.queue.in_flight())


async def test_2_12_2_errors_and_rejections_are_counted_apart():
    """No plugin to blame is an error; a rejection ends a run of errors."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        fails(cluster, info)
        errors = info.unschedulable_count, info.consecutive_errors_count
        cluster.queue.activate([info.pod])
        fails(cluster, cluster.queue.pop(), "A")

        assert ((0, 1), (1, 0)) == (errors, (info.unschedulable_count, info.consecutive_errors_count))


async def test_2_12_3_the_record_starts_afresh():
    """A new time stamp, no backoff worked out yet, no mark of a flush."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        info.backoff_expiration, info.was_flushed_from_unschedulable = 7.0, True
        await cluster.tick(3)
        fails(cluster, info, "A")

        assert (1003, None, False) == (
            info.timestamp,
            info.backoff_expiration,
            info.was_flushed_from_unschedulable,
        )


async def test_2_12_4_each_rejector_holds_one_pod_more():
    """The gauge by plugin and profile."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        fails(cluster, info, "A")

        assert 1 == cluster.metric("unschedulable_pods", **BY_PLUGIN)


async def test_2_12_5_without_rejectors_a_pod_backs_off_at_once():
    """No event has to come: it goes to the error heap."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        fails(cluster, info)

        assert "error backoff" == cluster.where()


async def test_2_12_6_a_member_of_a_group_is_not_parked():
    """With GenericWorkload a pod of a group backs off whatever its hints say."""
    group = SchedulingGroup(pod_group_name="g")
    cluster = Cluster(Doorkeeper(), gates={"GenericWorkload": True})
    async with cluster.paused():
        cluster.add_pod(scheduling_group=group)
        fails(cluster, cluster.queue.pop(), "A")

        assert "backoff" == cluster.where()


@pytest.mark.parametrize(
    ("during", "place"),
    [
        pytest.param(lambda cluster: cluster.add_node("n1"), "backoff", id="event in flight"),
        pytest.param(lambda _cluster: None, "pool", id="none in flight"),
    ],
)
async def test_2_12_7_and_11_3_2_events_in_flight_are_replayed(during, place):
    """An event before the pop is not: the snapshot had it."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_node()
        cluster.add_pod()
        info = cluster.queue.pop()
        during(cluster)
        fails(cluster, info, "A")

        assert place == cluster.where()


async def test_2_12_8_and_11_3_3_the_first_immediately_wins():
    """A plugin that left the pod pending says that its time has come: activeQ, without a backoff."""
    hints = {NODE_ADD: QUEUE, CLAIM_ADD: SKIP}
    cluster, info = flying(
        Doorkeeper(status=PENDING, hints=hints), Doorkeeper("B", hints={NODE_LABEL: QUEUE})
    )
    async with cluster.paused():
        cluster.add_node()
        cluster.change_node(labels={"a": "b"})
        fails(cluster, info, "B", pending=["A"])

        assert "active" == cluster.where()


async def test_2_12_9_without_pending_plugins_the_first_yes_ends_the_search():
    """Later events are not asked about."""
    door = Doorkeeper()
    cluster, info = flying(door)
    async with cluster.paused():
        cluster.add_node("n0")
        cluster.add_node("n1")
        fails(cluster, info, "A")

        assert [("NodeAdd", "p0")] == door.heard


async def test_2_12_10_with_pending_plugins_a_later_event_may_be_better():
    """After backoff is remembered while an Immediately is looked for."""
    cluster, info = flying(
        Doorkeeper("A", hints={NODE_ADD: QUEUE}), Doorkeeper("B", hints={NODE_LABEL: QUEUE}, status=PENDING)
    )
    async with cluster.paused():
        cluster.add_node()
        cluster.change_node(labels={"a": "b"})
        fails(cluster, info, "A", pending=["B"])

        assert "active" == cluster.where()


async def test_2_12_11_and_11_3_6_being_activated_in_flight_means_after_backoff():
    """Activate counts for the pod that it names, and does not skip its backoff."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        cluster.queue.activate([cluster.pod()])
        fails(cluster, info, "A")

        assert "backoff" == cluster.where()


async def test_2_12_12_and_11_3_7_activating_another_pod_means_nothing():
    """The wildcard is targeted."""
    cluster, info = flying(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod("q")
        cluster.queue.pop()
        cluster.queue.activate([cluster.pod("q")])
        fails(cluster, info, "A")

        assert "pool" == cluster.where()


async def test_2_12_13_a_failed_attempt_is_the_event_it_is_counted_under():
    """ScheduleAttemptFailure, wherever the pod goes."""
    cluster = Cluster(Doorkeeper(status={"bad": BROKEN, "unfit": unschedulable("no")}))
    cluster.add_node()
    cluster.add_pod("bad")
    cluster.add_pod("unfit")
    await cluster.run()

    assert {"backoff": 1, "unschedulable": 1} == {
        queue: cluster.metric("queue_incoming_pods_total", queue=queue, event="ScheduleAttemptFailure")
        for queue in ("backoff", "unschedulable")
    }
