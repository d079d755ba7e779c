"""How long a failure holds a pod back (core 2.4, 2.5)."""

import pytest

from berth.framework.status import unschedulable
from berth.queue.requeueing.requeue_strategy import RequeueStrategy
from tests.failures.reporting import reports
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import Doorkeeper

BROKEN = RuntimeError("broken")
UNWINDOWED = {"SchedulerPopFromBackoffQ": False}


def with_node(door, **options):
    cluster = Cluster(door, **options)
    cluster.add_node()
    return cluster


async def failing(cluster, door, *answers):
    """Let the pod fail like that, one attempt after another, whatever its backoff."""
    for answer in answers:
        door.status = answer
        cluster.queue.activate([cluster.pod()])
        await cluster.turn()


def held_back(cluster):
    """For how long the last failure holds the pod back, before flooring."""
    record = cluster.queued()
    cluster.queue._sub_queues.backoff.policy.expiry(record)
    return record.backoff_expiration - cluster.now


async def test_2_4_1_errors_double_the_backoff_up_to_the_maximum():
    """1, 2, 4, 8, 10, 10 seconds, each released with the first whole second after its last one."""
    cluster = with_node(Doorkeeper(status=BROKEN))
    cluster.add_pod()
    await cluster.tick(41)

    assert [1000, 1002, 1005, 1010, 1019, 1030, 1041] == cluster.tried_at


@pytest.mark.parametrize(
    ("initial", "maximum", "count", "seconds"),
    [(1, 10, 3, 4), (1, 10, 5, 10), (3, 1000, 5, 48), (1, 32, 16, 32)],
)
async def test_2_4_1_and_11_2_1_rejections_double_the_backoff(initial, maximum, count, seconds):
    """The duration of a run of rejections, whatever the limits."""
    door = Doorkeeper()
    cluster = with_node(door, settings={"podInitialBackoffSeconds": initial, "podMaxBackoffSeconds": maximum})
    cluster.add_pod()
    async with cluster.paused():
        await failing(cluster, door, *[unschedulable("no")] * count)

        assert seconds == held_back(cluster)


async def test_2_4_2_and_11_2_1_no_count_overflows():
    """A hundred rejections hold a pod back for the maximum."""
    door = Doorkeeper()
    cluster = with_node(door)
    cluster.add_pod()
    async with cluster.paused():
        await failing(cluster, door, *[unschedulable("no")] * 100)

        assert held_back(cluster) == 10


async def test_2_4_3_and_11_2_2_errors_count_apart_from_rejections():
    """After three rejections an error backs off for a second; the next rejection is the fourth."""
    door, no = Doorkeeper(), unschedulable("no")
    cluster = with_node(door)
    cluster.add_pod()
    async with cluster.paused():
        await failing(cluster, door, no, no, no, BROKEN)

        assert held_back(cluster) == 1
        assert cluster.where() == "error backoff"

        await failing(cluster, door, no)

        assert held_back(cluster) == 8


async def test_2_4_4_the_expiry_is_floored_to_the_wall_clock_second():
    """The window is one of absolute time: 1000.4 and a second more is kept as 1001."""
    door = Doorkeeper()
    cluster = with_node(door)
    await cluster.tick(0.4)
    cluster.add_pod()
    await cluster.run()
    held_back(cluster)

    assert cluster.queued().backoff_expiration == 1001


async def test_2_4_5_and_11_2_3_the_last_second_counts_in_full():
    """A pod whose window is this second is released by the flush of the next one."""
    cluster = with_node(Doorkeeper(status=BROKEN))
    await cluster.tick(0.4)
    cluster.add_pod()
    await cluster.tick(1.59)

    assert cluster.tried_at == [1000.4]

    await cluster.tick(0.01)

    assert cluster.tried_at == [1000.4, 1002]


async def test_2_4_6_without_the_gate_nothing_is_floored():
    """A pod waits for its exact second, and for the flush after it."""
    cluster = with_node(Doorkeeper(status=BROKEN), gates=UNWINDOWED)
    await cluster.tick(0.4)
    cluster.add_pod()
    await cluster.run()
    cluster.queue._sub_queues.backoff.policy.expiry(cluster.queued())

    assert cluster.queued().backoff_expiration == pytest.approx(1001.4)

    await cluster.tick(5)

    assert cluster.tried_at[:2] == [1000.4, 1002]


async def test_2_4_7_and_11_2_1_a_maximum_of_nothing_is_no_backoff():
    """With no backoff at all a failed pod is ready at once."""
    door = Doorkeeper()
    cluster = with_node(door)
    cluster.queue._sub_queues.backoff.policy = type(cluster.queue._sub_queues.backoff.policy)(1, 0)
    cluster.add_pod()
    await cluster.run()

    assert not cluster.queue._sub_queues.backoff.policy.backing_off(cluster.queued(), cluster.now)


async def test_2_5_1_errors_and_rejections_back_off_apart():
    """A pod without a rejecting plugin waits in the error heap, a rejected one in the normal heap."""
    door = Doorkeeper(status={"bad": BROKEN, "unfit": unschedulable("no")})
    cluster = with_node(door)
    async with cluster.paused():
        cluster.add_pod("bad")
        cluster.add_pod("unfit")
        await cluster.turn()
        await cluster.turn()
        cluster.add_node("n1")

        assert cluster.where("bad") == "error backoff"
        assert cluster.where("unfit") == "backoff"
        assert cluster.metric("queue_incoming_pods_total", queue="backoff", event="NodeAdd") == 1
        assert (
            cluster.metric("queue_incoming_pods_total", queue="backoff", event="ScheduleAttemptFailure") == 1
        )


@reports("contradicted", log="`pod was in the other backoff queue`")
async def test_2_5_2_a_pod_in_the_wrong_heap_is_taken_out_of_it(caplog):
    """A pod that failed otherwise than before is in one heap only, and not counted as incoming again."""
    cluster = with_node(Doorkeeper(status=BROKEN))
    cluster.add_pod()
    await cluster.run()
    async with cluster.paused():
        record = cluster.queued()
        record.unschedulable_plugins = {"A"}
        cluster.queue._sub_queues.requeue(record, RequeueStrategy.AFTER_BACKOFF, "NodeAdd")

        assert cluster.where() == "backoff"
        assert len(cluster.queue._sub_queues.backoff) == 1
        assert "pod was in the other backoff queue pod=default/p0" in caplog.text
        assert not cluster.metric("queue_incoming_pods_total", queue="backoff", event="NodeAdd")


async def test_2_5_3_and_11_3_1_within_a_second_the_order_is_the_queues():
    """Earlier windows go first, then higher priorities; the error heap is not popped early."""
    no = unschedulable("no")
    door = Doorkeeper(status={"p1": no, "p2": no, "p3": no, "e": BROKEN})
    cluster = with_node(door)
    async with cluster.paused():
        cluster.add_pod("p3")
        await cluster.turn()
        await cluster.tick(1)
        cluster.add_pod("p1", priority=1)
        cluster.add_pod("p2", priority=9)
        cluster.add_pod("e")
        for _ in range(3):
            await cluster.turn()
        cluster.add_node("n1")

        assert [await cluster.turn() for _ in range(4)] == ["p3", "p2", "p1", None]
        assert cluster.where("e") == "error backoff"
