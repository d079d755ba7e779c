"""What time alone moves (core 2.15)."""

from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, SKIP, Doorkeeper
from tests.unit.queue.kit import NODE_ADD

NEVER = {NODE_ADD: SKIP}
UNWINDOWED = {"SchedulerPopFromBackoffQ": False}


async def test_2_15_1_backoffs_end_on_whole_seconds():
    """A pod that backs off is released within a second of its time, at a whole one."""
    cluster = Cluster(Doorkeeper(hints={NODE_ADD: QUEUE}), gates=UNWINDOWED)
    await cluster.tick(0.3)
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    cluster.add_node("n1")
    await cluster.tick(3)

    assert [1000.3, 1002] == cluster.tried_at
    assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event="BackoffComplete")


async def test_2_15_2_rejected_pods_are_released_before_broken_ones():
    """The normal heap first, then the error heap, each only as far as it is due."""
    door = Doorkeeper(
        status={"bad": RuntimeError("broken"), "unfit": Doorkeeper().status}, hints={NODE_ADD: QUEUE}
    )
    cluster = Cluster(door, gates=UNWINDOWED)
    cluster.add_node()
    async with cluster.paused():
        for name in ("bad", "unfit"):
            cluster.add_pod(name)
            await cluster.turn()
        cluster.add_node("n1")
        await cluster.tick(10)
        order = []
        put = cluster.queue._sub_queues.move_to_active
        cluster.queue._sub_queues.move_to_active = lambda record, *a, **k: (
            order.append(record.pod.name) or put(record, *a, **k)
        )
        cluster.queue.flush()

        assert ["unfit", "bad"] == order


async def test_2_15_3_what_still_backs_off_stays():
    """The flush stops at the first pod whose time has not come."""
    cluster = Cluster(Doorkeeper(status=RuntimeError("broken")))
    cluster.add_node()
    cluster.add_pod("early")
    await cluster.tick(1.5)
    cluster.add_pod("late")
    await cluster.tick(0.6)

    assert ["early", "late", "early"] == cluster.tried


async def test_2_15_4_and_11_3_9_leftovers_are_moved_after_five_minutes():
    """Exactly five minutes are not enough; then the next half minute's flush takes the pod."""
    cluster = Cluster(Doorkeeper(hints=NEVER))
    cluster.add_node()
    cluster.add_pod()
    await cluster.tick(300)
    still = cluster.where()
    await cluster.tick(30)

    assert "pool" == still
    assert [1000, 1330] == cluster.tried_at


async def test_2_15_5_a_flushed_pod_is_marked():
    """Until its attempt has failed again."""
    cluster = Cluster(Doorkeeper(hints=NEVER))
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        await cluster.tick(331)
        cluster.queue.flush()
        marked = cluster.queued().was_flushed_from_unschedulable
        await cluster.turn()

        assert (True, False) == (marked, cluster.queued().was_flushed_from_unschedulable)


async def test_2_15_6_the_flush_is_an_event_for_pods_in_flight():
    """A wildcard, kept by its own label."""
    cluster = Cluster(Doorkeeper(hints=NEVER))
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        cluster.add_pod("flies")
        cluster.queue.pop()
        await cluster.tick(331)
        cluster.queue.flush()

        assert 1 == cluster.metric("inflight_events", event="UnschedulableTimeout")


async def test_2_15_7_every_pod_is_retried_within_five_and_a_half_minutes():
    """Whatever its hints say."""
    cluster = Cluster(Doorkeeper(hints=NEVER))
    cluster.add_node()
    cluster.add_pod()
    await cluster.tick(3600)
    gaps = [later - earlier for earlier, later in zip(cluster.tried_at, cluster.tried_at[1:], strict=False)]

    assert 10 <= len(gaps)
    assert max(gaps) <= 330
