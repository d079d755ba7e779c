"""The queue's metrics (core 2.16)."""

from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import Doorkeeper, Gate

QUEUES = ("active", "backoff", "unschedulable", "gated")


def pending(cluster):
    return [cluster.metric("pending_pods", queue=queue) for queue in QUEUES]


async def test_2_16_1_pending_pods_follow_the_places():
    """Each distinct pod counts once, in the place where it is."""
    cluster = Cluster(Doorkeeper(), Gate("Gate", "kept"))
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        seen = [pending(cluster)]
        await cluster.turn()
        seen.append(pending(cluster))
        cluster.add_node("n1")
        cluster.add_pod("kept")
        seen.append(pending(cluster))

        assert [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]] == seen


async def test_2_16_2_arrivals_are_counted_by_queue_and_event():
    """A pod's way through the places, as series."""
    cluster = Cluster(Doorkeeper(), Gate("Gate", "kept"))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    cluster.add_node("n1")
    await cluster.run()
    cluster.add_pod("kept")
    ways = [
        ("active", "UnschedulablePodAdd", 1),
        ("unschedulable", "ScheduleAttemptFailure", 2),
        ("backoff", "NodeAdd", 1),
        ("active", "PopFromBackoffQ", 1),
        ("unschedulable", "UnschedulablePodAdd", 1),
    ]

    assert ways == [
        (queue, event, cluster.metric("queue_incoming_pods_total", queue=queue, event=event))
        for queue, event, _ in ways
    ]


async def test_2_16_3_rejectors_count_the_pods_they_hold():
    """Up as a pod comes back or is gated, down as it is popped or deleted from the pool."""
    cluster = Cluster(Doorkeeper())
    cluster.add_node()
    for name in ("p0", "p1"):
        cluster.add_pod(name)
    await cluster.run()
    held = [cluster.metric("unschedulable_pods", plugin="A", profile="default-scheduler")]
    cluster.delete_pod("p1")
    held.append(cluster.metric("unschedulable_pods", plugin="A", profile="default-scheduler"))

    assert [2, 1] == held


async def test_2_16_4_kept_events_are_counted_by_label():
    """Markers count as PodPopped; all of it goes with the last flight."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        uid = cluster.queue.pop().pod.uid
        cluster.add_node()
        labels = ("PodPopped", "NodeAdd")
        during = [cluster.metric("inflight_events", event=label) for label in labels]
        cluster.queue.done(uid)

        assert ([1, 1], [0, 0]) == (
            during,
            [cluster.metric("inflight_events", event=label) for label in labels],
        )
