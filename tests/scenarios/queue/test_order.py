"""What the queue is made of, and who goes first (core 2.1 to 2.3)."""

from berth.framework.interface import QueueSortPlugin
from berth.framework.status import unschedulable
from tests.fakes import Named
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import PENDING, Doorkeeper, Gate
from tests.unit.queue.kit import NODE_ADD


class ByName(Named, QueueSortPlugin):
    """Alphabetical order."""

    def less(self, a, b):
        return a.pod.name < b.pod.name


async def test_2_1_1_each_pod_waits_in_one_place():
    """Active, backing off after a rejection or an error, rejected, gated and in flight: each has a place."""
    status = {"unfit": unschedulable("no"), "bad": RuntimeError("broken"), "again": unschedulable("no")}
    cluster = Cluster(Doorkeeper(status=status), Gate("Gate", "kept"))
    cluster.add_node()
    async with cluster.paused():
        for name in ("again", "bad"):
            cluster.add_pod(name)
            await cluster.turn()
        cluster.add_node("n1")
        cluster.add_pod("unfit", priority=1)
        await cluster.turn()
        cluster.add_pod("kept")
        cluster.add_pod("popped", priority=1)
        cluster.queue.pop()
        cluster.add_pod("ready")

        assert {
            "ready": "active",
            "again": "backoff",
            "bad": "error backoff",
            "unfit": "pool",
            "kept": "gated",
            "popped": "in flight",
        } == {pod.name: cluster.where(pod.name) for pod in cluster.api.all(type(cluster.pod("ready")))}
        assert (1, 2, 1, 1) == tuple(cluster.queue.sizes())


async def test_2_1_2_a_recreated_pod_takes_the_same_place():
    """Waiting pods are known by namespace and name, pods in flight by UID."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod(uid="first")
        popped = cluster.queue.pop()
        cluster.delete_pod()
        cluster.add_pod(uid="second")

        assert ["first"] == list(cluster.queue.in_flight())
        assert "second" == cluster.queued().pod.uid

        cluster.add_pod(uid="second", labels={"a": "b"})

        assert 1 == cluster.queue.sizes().active
        assert "first" == popped.pod.uid


async def test_2_2_1_a_record_shows_the_history_of_a_pod():
    """Attempts, when it was first ready, when it last failed, how often, and who turned it down."""
    door = Doorkeeper(status=unschedulable("no"))
    cluster = Cluster(door, Doorkeeper("B", status=PENDING))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    await cluster.tick(5)
    door.status = RuntimeError("broken")
    cluster.queue.activate([cluster.pod()])
    await cluster.run()
    record = cluster.queued()

    assert (2, 1, 1) == (record.attempts, record.unschedulable_count, record.consecutive_errors_count)
    assert (1000, 1005) == (record.initial_attempt_timestamp, record.timestamp)
    assert set() == record.rejectors

    door.open()
    await cluster.tick(5)
    record = cluster.queued()

    assert ({"B"}, {"B"}, 0) == (
        record.unschedulable_plugins,
        record.pending_plugins,
        record.consecutive_errors_count,
    )


async def test_2_2_2_moves_leave_the_record_alone():
    """Timestamp, counters and rejectors stay while a pod is moved by an event."""
    cluster = Cluster(Doorkeeper())
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        before = cluster.queued()
        await cluster.tick(30)
        cluster.add_node("n1")
        after = cluster.queued()

        assert "active" == cluster.where()
        assert before is after
        assert (1000, 1, {"A"}) == (after.timestamp, after.unschedulable_count, after.unschedulable_plugins)


async def test_2_2_3_rejectors_stay_until_the_next_failure():
    """They are not cleared when the pod is popped, but when its attempt has failed."""
    seen, door = [], Doorkeeper()
    cluster = Cluster(door)
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        cluster.queue.activate([cluster.pod()])
        record = cluster.queued()
        door.during = lambda _: seen.append(set(record.unschedulable_plugins))
        door.status = RuntimeError("broken")
        await cluster.turn()

        assert [{"A"}] == seen
        assert set() == cluster.queued().unschedulable_plugins


async def test_2_3_1_higher_priorities_go_first():
    """A pod without a priority counts as 0."""
    cluster = Cluster(Doorkeeper())
    for name, priority in (("zero", 0), ("none", None), ("low", -1), ("high", 7)):
        cluster.add_pod(name, priority=priority)
    await cluster.run()

    assert ["high", "zero", "none", "low"] == cluster.tried


async def test_2_3_2_among_equals_the_older_goes_first():
    """The time of the last attempt, or of creation, decides."""
    cluster = Cluster(Doorkeeper(hints={NODE_ADD: None}))
    cluster.add_node()
    async with cluster.paused():
        for name in ("b", "a"):
            cluster.add_pod(name)
            await cluster.turn()
            await cluster.tick(1)
        cluster.add_pod("new")
        await cluster.tick(30)
        cluster.add_node("n1")

        assert ["b", "a", "new"] == [await cluster.turn() for _ in range(3)]


async def test_2_3_3_the_first_profiles_order_is_that_of_all_pods():
    """One QueueSort plugin orders the pods of all profiles."""
    door = Doorkeeper()
    cluster = Cluster(profiles={PROFILE: [ByName("ByName"), door], "other": [ByName("ByName"), door]})
    for name, profile in (("c", PROFILE), ("b", "other"), ("a", PROFILE)):
        cluster.add_pod(name, scheduler_name=profile, priority=ord(name))
    await cluster.run()

    assert ["a", "b", "c"] == cluster.tried
