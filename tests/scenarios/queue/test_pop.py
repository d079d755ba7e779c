"""Taking pods out, and what is remembered of them while they fly (core 2.10, 2.11)."""

from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import PENDING, QUEUE, Doorkeeper, Gate
from tests.unit.queue.kit import CLAIM_ADD, NODE_ADD

BROKEN = RuntimeError("broken")
BY_PLUGIN = {"plugin": "A", "profile": "default-scheduler"}


def in_flight_list(cluster):
    """The labels of the events that are kept, oldest first."""
    return [event.label for event in cluster.queue._in_flight.events()]


async def test_2_10_1_activeq_is_preferred_to_backoffq():
    """A pod that backs off is popped early only where nothing else is ready, whatever its priority."""
    cluster = Cluster(Doorkeeper())
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod("backs-off", priority=9)
        await cluster.turn()
        cluster.add_node("n1")
        cluster.add_pod("ready", priority=-9)

        assert ["ready", "backs-off", None] == [await cluster.turn() for _ in range(3)]


async def test_2_10_2_popping_from_backoff_is_counted_and_skips_the_gates():
    """It counts as an arrival in activeQ; PreEnqueue does not run again; the first readiness stands."""
    gate = Gate()
    cluster = Cluster(gate, Doorkeeper())
    cluster.add_node()
    async with cluster.paused():
        cluster.add_pod()
        await cluster.turn()
        cluster.add_node("n1")
        asked = len(gate.calls)
        info = cluster.queue.pop()

        assert (asked, 1000) == (len(gate.calls), info.initial_attempt_timestamp)
        assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event="PopFromBackoffQ")


async def test_2_10_2_without_the_gate_backoff_is_never_popped():
    """With SchedulerPopFromBackoffQ off a pod waits for the flush."""
    cluster = Cluster(Doorkeeper(), gates={"SchedulerPopFromBackoffQ": False})
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    cluster.add_node("n1")
    await cluster.run()

    assert "backoff" == cluster.where()
    assert [1000] == cluster.tried_at


async def test_2_10_3_each_pop_is_an_attempt():
    """The count goes with the pod."""
    cluster = Cluster(Doorkeeper(status=BROKEN))
    cluster.add_node()
    cluster.add_pod()
    await cluster.tick(5)

    assert 3 == cluster.queued().attempts


async def test_2_10_4_a_pod_in_flight_is_not_popped_twice(caplog):
    """The second record of the same UID is dropped with an error, and the next pod popped."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod("p0", priority=9)
        cluster.queue.pop()
        cluster.queue.add(cluster.pod("p0"))
        cluster.add_pod("p1")

        assert "p1" == cluster.queue.pop().pod.name
    assert "the same pod is tracked in multiple places in the scheduler" in caplog.text


async def test_2_10_5_a_pop_leaves_a_marker():
    """From then on events are kept for the pod."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        cluster.queue.pop()

        assert ["default-p0"] == list(cluster.queue.in_flight())
        assert 1 == cluster.metric("inflight_events", event="PodPopped")


async def test_2_10_6_scheduling_cycles_are_numbered():
    """Each pop counts one on."""
    cluster = Cluster(Doorkeeper())
    for name in ("p0", "p1", "p2"):
        cluster.add_pod(name)
    await cluster.run()

    assert 3 == cluster.queue.scheduling_cycle


async def test_2_10_7_a_popped_pod_counts_as_held_back_by_no_plugin():
    """What its last attempt added for each rejector is taken back."""
    cluster = Cluster(Doorkeeper())
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    held = cluster.metric("unschedulable_pods", **BY_PLUGIN)
    async with cluster.paused():
        cluster.queue.activate([cluster.pod()])
        cluster.queue.pop()

        assert (1, 0) == (held, cluster.metric("unschedulable_pods", **BY_PLUGIN))


async def test_2_10_8_and_11_3_12_errors_are_not_popped_early():
    """A pod whose attempt broke waits out its backoff although the scheduler has nothing else to do."""
    cluster = Cluster(Doorkeeper(status=BROKEN))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert "error backoff" == cluster.where()

    await cluster.tick(1.9)

    assert [1000] == cluster.tried_at


async def test_2_10_9_a_rejected_pod_is_retried_at_once_where_the_scheduler_is_idle():
    """Its backoff only delays it while others are ready."""
    cluster = Cluster(Doorkeeper())
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    for name in ("n1", "n2", "n3"):
        cluster.add_node(name)
        await cluster.run()

    assert [1000] * 4 == cluster.tried_at


async def test_2_10_10_what_is_left_after_closing_is_still_popped():
    """Closing wakes pops that wait; an empty queue gives nothing then."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        cluster.queue.close()

        assert ["p0", None] == [info and info.pod.name for info in (cluster.queue.pop(), cluster.queue.pop())]


async def test_2_11_1_done_may_be_said_twice():
    """A pod that is not in flight is no matter."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        uid = cluster.queue.pop().pod.uid
        cluster.queue.done(uid)
        cluster.queue.done(uid)

        assert 0 == cluster.metric("inflight_events", event="PodPopped")


async def test_2_11_2_moves_updates_and_activations_are_kept():
    """Each of the three appends to the list of a pod in flight."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        cluster.queue.pop()
        cluster.add_node()
        cluster.change_pod(labels={"a": "b"})
        cluster.queue.activate([cluster.pod()])

        assert ["NodeAdd", "UnschedulablePodUpdatePodLabel", "ForceActivate"] == in_flight_list(cluster)


async def test_2_11_3_and_11_3_10_done_drops_what_is_not_needed():
    """Events before the first marker go; those after an older pod's marker stay."""
    for first, left in ((1, ["NodeAdd", "NodeAdd"]), (0, ["NodeAdd"])):
        cluster = Cluster(Doorkeeper())
        async with cluster.paused():
            uids = []
            for number in range(2):
                cluster.add_pod(f"p{number}")
                uids.append(cluster.queue.pop().pod.uid)
                cluster.add_node(f"n{number}")
            cluster.queue.done(uids[first])

            assert left == in_flight_list(cluster)

            cluster.queue.done(uids[1 - first])

            assert [] == in_flight_list(cluster)
            assert 0 == cluster.metric("inflight_events", event="NodeAdd")


async def test_2_11_4_a_pod_misses_only_what_came_after_its_pop():
    """Markers of other pods in between do not matter, older events do not count."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod("p0")
        cluster.queue.pop()
        cluster.add_node("n0")
        cluster.add_pod("p1")
        cluster.queue.pop()
        cluster.add_node("n1")
        missed = cluster.queue._in_flight.events_for

        assert ["n0", "n1"] == [entry.new.name for entry in missed("default-p0")]
        assert ["n1"] == [entry.new.name for entry in missed("default-p1")]


async def test_2_11_5_a_pod_that_should_fly_and_does_not_backs_off(caplog):
    """The mistake is logged, and costs a backoff."""
    cluster = Cluster(Doorkeeper())
    async with cluster.paused():
        cluster.add_pod()
        info = cluster.queue.pop()
        cluster.queue.done(info.pod.uid)
        info.unschedulable_plugins = {"A"}
        cluster.queue.add_unschedulable_if_not_present(info)

        assert "backoff" == cluster.where()
    assert "in flight Pod isn't found in the scheduling queue" in caplog.text


async def test_2_11_6_an_event_in_the_middle_of_a_cycle_is_not_missed():
    """A node that comes while a plugin looks at the others brings the pod back."""
    door = Doorkeeper()
    cluster = Cluster(door)
    cluster.add_node()
    door.during = lambda _: cluster.node("n1") or cluster.add_node("n1")
    cluster.add_pod()
    await cluster.run()

    assert ["p0", "p0"] == cluster.tried
    assert "pool" == cluster.where()
    assert NODE_ADD in door.hints


async def test_2_11_7_pending_pods_in_flight_skip_their_backoff(caplog):
    """The plugin that left it pending heard of what it waits for while the cycle still ran."""
    door = Doorkeeper(status=PENDING, hints={NODE_ADD: QUEUE, CLAIM_ADD: QUEUE})
    cluster = Cluster(door)
    cluster.add_node()
    async with cluster.paused():
        door.during = lambda _: cluster.add_node("n1")
        cluster.add_pod()
        await cluster.turn()

        assert "active" == cluster.where()
    assert not caplog.records
