"""What a pod's status and events say when no node fits, and what becomes of it (core 4.12 to 4.14)."""

import pytest
from msgspec.structs import replace

from berth.client.errors import RejectedError
from berth.framework.interface import CLEAR_NOMINATION, KEEP_NOMINATION, NominatingInfo, NominatingMode
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unresolvable, unschedulable
from tests.fakes import Binds, Permits, PostFilters, PreFilters, Rejects, Reserves, Scores
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import Doorkeeper

N9 = NominatingInfo(NominatingMode.OVERRIDE, "n9")
BROKEN = RuntimeError("broken")


async def tried(*plugins, nodes=1, pod=None, **options):
    """One pod's attempt; what happens to nominations afterwards brings nothing back."""
    cluster = Cluster(Doorkeeper(hints={}), *plugins, **options)
    for number in range(nodes):
        cluster.add_node(f"n{number}")
    cluster.add_pod(**(pod or {}))
    await cluster.run()
    return cluster


def message(cluster):
    return cluster.condition().message


# 4.12: the text.


async def test_4_12_1_reasons_are_counted_and_sorted_as_text():
    """And closed with a period."""
    verdicts = {f"n{i}": "b" for i in range(10)} | {"n10": "a", "n11": "a"}
    cluster = Cluster(Rejects("A", verdicts))
    for name in verdicts:
        cluster.add_node(name)
    cluster.add_pod()
    await cluster.run()

    assert "0/12 nodes are available: 10 b, 2 a." == message(cluster)


async def test_4_12_2_and_11_6_6_ten_comes_before_two():
    """By bytes, not by numbers."""
    verdicts = {f"n{i}": "b" for i in range(10)} | {"x0": "a", "x1": "a"}
    cluster = Cluster(Rejects("A", verdicts))
    for name in verdicts:
        cluster.add_node(name)
    cluster.add_pod()
    await cluster.run()

    assert message(cluster).index("10 b") < message(cluster).index("2 a")


async def test_4_12_3_each_reason_of_a_status_is_counted():
    """Two reasons on one node are two entries."""
    two = Status(Code.UNSCHEDULABLE, ("first", "second"))
    cluster = Cluster(Rejects("A", {"n0": two}))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert "0/1 nodes are available: 1 first, 1 second." == message(cluster)


async def test_4_12_4_what_prefilter_says_stands_alone():
    """No histogram beside it."""
    cluster = Cluster(PreFilters("A", unschedulable("nowhere")), Rejects("B", {"n0": "b"}))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert "0/1 nodes are available: nowhere." == message(cluster)


async def test_4_12_5_and_11_6_5_what_postfilter_says_follows():
    """After a space, as it is."""
    cluster = await tried(PostFilters("Room", unschedulable("preemption: none")), nodes=2)

    assert "0/2 nodes are available: 2 A is shut. preemption: none" == message(cluster)


async def test_4_12_6_without_reasons_the_text_ends_in_a_colon():
    """Nodes that were not looked at count for nothing."""
    cluster = Cluster(Doorkeeper(status=unschedulable()))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert "0/1 nodes are available:" == message(cluster)


async def test_4_12_7_an_error_is_the_first_reason_of_its_status():
    """A rejection that was made of an error."""
    cluster = Cluster(Rejects("A", {"n0": Status(Code.UNSCHEDULABLE, ("more",), error=BROKEN)}))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert "0/1 nodes are available: 1 broken, 1 more." == message(cluster)


# 4.13: PostFilter.


async def test_4_13_1_without_postfilter_the_nomination_is_cleared():
    """No plugin makes room for the pod."""
    cluster = await tried(pod={"nominated_node_name": "n9"})

    assert ("", "0/1 nodes are available: 1 A is shut.") == (cluster.nomination(), message(cluster))


async def test_4_13_2_the_first_that_makes_room_ends_the_phase():
    """Its result is the nomination, its message is empty."""
    second = PostFilters("Second", SUCCESS)
    cluster = await tried(PostFilters("First", SUCCESS, N9), second)

    assert ("n9", []) == (cluster.nomination(), second.calls)
    assert "0/1 nodes are available: 1 A is shut." == message(cluster)


async def test_4_13_3_one_that_knows_that_there_is_no_way_ends_it_too():
    """With its reasons."""
    second = PostFilters("Second", SUCCESS)
    cluster = await tried(PostFilters("First", unresolvable("never")), second)

    assert ("0/1 nodes are available: 1 A is shut. never", []) == (message(cluster), second.calls)


async def test_4_13_4_one_that_breaks_ends_it_without_a_result():
    """The pod stays unschedulable, the nomination as it is."""
    second = PostFilters("Second", SUCCESS, N9)
    cluster = await tried(PostFilters("First", failed("broken")), second, pod={"nominated_node_name": "n7"})

    assert ([], "Unschedulable", "n7") == (second.calls, cluster.condition().reason, cluster.nomination())
    assert "0/1 nodes are available: 1 A is shut. broken" == message(cluster)


async def test_4_13_5_unschedulable_answers_are_collected():
    """All reasons; the last nomination that says something counts."""
    cluster = await tried(
        PostFilters("First", unschedulable("a"), N9),
        PostFilters("Second", unschedulable("b"), KEEP_NOMINATION),
        PostFilters("Third", unschedulable("c")),
    )

    assert "0/1 nodes are available: 1 A is shut. a, b, c" == message(cluster)
    assert "n9" == cluster.nomination()


async def test_4_13_6_a_later_nomination_overrides_an_earlier_one():
    """One that clears, too."""
    cluster = await tried(
        PostFilters("First", unschedulable("a"), N9),
        PostFilters("Second", unschedulable("b"), CLEAR_NOMINATION),
        pod={"nominated_node_name": "n7"},
    )

    assert "" == cluster.nomination()


async def test_4_13_7_a_cycle_can_do_without_postfilter():
    """If its state says so, the message does, too."""

    class Alone(PreFilters):
        def pre_filter(self, state, pod, nodes):
            state.skip_post_filter = True
            return super().pre_filter(state, pod, nodes)

    room = PostFilters("Room", SUCCESS, N9)
    cluster = await tried(Alone("Alone"), room)

    assert [] == room.calls
    assert "0/1 nodes are available: 1 A is shut. All PostFilter plugins are skipped" == message(cluster)


async def test_4_13_8_postfilter_plugins_are_never_rejectors():
    """Their names are no rejectors."""
    cluster = await tried(PostFilters("Room", unschedulable("no")))

    assert {"A"} == cluster.queued().rejectors


# 4.14: failure handling.


@pytest.mark.parametrize(
    ("status", "reason", "result"),
    [(unschedulable("no"), "Unschedulable", "unschedulable"), (BROKEN, "SchedulerError", "error")],
)
async def test_4_14_1_the_reason_distinguishes_rejections_from_errors(status, reason, result):
    """In the condition and in the metrics."""
    cluster = Cluster(Doorkeeper(status=status))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    labels = {"result": result, "profile": PROFILE}

    assert ("False", reason) == (cluster.condition().status, cluster.condition().reason)
    assert 1 == cluster.metric("schedule_attempts_total", **labels)
    assert 1 == cluster.metric("scheduling_attempt_duration_seconds_count", **labels)


async def test_4_14_2_rejectors_are_those_of_this_attempt():
    """What was there before is cleared first."""
    door = Doorkeeper(hints={})
    cluster = Cluster(door, Doorkeeper("B", hints={}))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    door.open()
    cluster.queue.activate([cluster.pod()])
    await cluster.run()

    assert {"B"} == cluster.queued().rejectors


async def test_4_14_3_no_fit_error_is_an_error_for_the_queue():
    """Whatever the condition says: a Bind plugin's rejection backs off as an error."""
    cluster = Cluster(Binds(status=unschedulable("refused")))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert ("Unschedulable", "error backoff") == (cluster.condition().reason, cluster.where())


async def test_4_14_4_a_pod_that_is_gone_is_not_put_back():
    """Nor is one that got a node; in flight it is no longer, and its owner gets an event all the same."""
    for change in (lambda c: c.delete_pod(), lambda c: c.change_pod(spec={"node_name": "n0"})):
        door = Doorkeeper()
        cluster = Cluster(door)
        cluster.add_node()
        door.during = lambda _, change=change, cluster=cluster: change(cluster)
        cluster.add_pod()
        await cluster.run()

        assert (None, []) == (cluster.queued(), list(cluster.queue.in_flight()))
        assert ["FailedScheduling"] == [reason for reason, _, _ in cluster.notes]


async def test_4_14_5_a_recreated_pod_is_left_alone():
    """No event, no condition, no nomination for the one that took its name."""

    def recreate(_pod):
        if cluster.pod().uid == "first":
            cluster.delete_pod()
            cluster.add_pod(uid="second", gates=["wait"])

    door = Doorkeeper()
    cluster = Cluster("SchedulingGates", door, PostFilters("Room", SUCCESS, N9))
    cluster.add_node()
    door.during = recreate
    cluster.add_pod(uid="first")
    await cluster.run()

    assert ([], [], []) == (cluster.notes, cluster.calls("patch_status"), list(cluster.queue.in_flight()))
    assert "second" == cluster.queued().pod.uid


async def test_4_14_6_the_pod_goes_back_as_the_watch_has_it_now():
    """What changed during the attempt counts for the next one."""
    door = Doorkeeper(hints={})
    cluster = Cluster(door)
    cluster.add_node()
    door.during = lambda _: cluster.change_pod(labels={"new": "yes"})
    cluster.add_pod()
    await cluster.run()

    assert {"new": "yes"} == cluster.queued().pod.labels


async def test_4_14_7_the_pod_is_back_before_anything_is_written():
    """Queue first, then nomination, event and status."""
    order = []
    cluster = Cluster(Doorkeeper(hints={}), PostFilters("Room", SUCCESS, N9))
    cluster.add_node()
    pod = cluster.add_pod()
    cluster.recorder.on_event = lambda: order.append(
        (cluster.where(), cluster.queue.nominator.node_of(pod.uid), len(cluster.calls("patch_status")))
    )
    await cluster.run()

    assert [("pool", "n9", 0)] == order


async def test_4_14_8_the_event_is_a_warning_with_the_whole_message():
    """FailedScheduling, action Scheduling; the recorder cuts it for the API."""
    cluster = await tried()

    assert [
        ("default/p0", "Warning", "FailedScheduling", "Scheduling", "0/1 nodes are available: 1 A is shut.")
    ] == cluster.recorder.events


async def test_4_14_9_and_10_4_percent_signs_are_left_alone():
    """A message is no format."""
    cluster = Cluster(Doorkeeper(status=unschedulable("100% full %d")))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert [("FailedScheduling", "p0", "0/1 nodes are available: 1 100% full %d.")] == cluster.notes


async def test_4_14_10_the_condition_shows_the_pods_generation():
    """observedGeneration, and when it changed."""
    cluster = Cluster(Doorkeeper(hints={}))
    cluster.add_node()
    async with cluster.paused():
        pod = cluster.add_pod()
        cluster.add(replace(pod, metadata=replace(pod.metadata, generation=7)))
    condition = cluster.condition()

    assert ("PodScheduled", "False", 7) == (condition.type, condition.status, condition.observed_generation)
    assert "1970-01-01T00:16:40Z" == condition.last_transition_time


async def test_4_14_11_a_status_that_cannot_be_written_is_logged(caplog):
    """The pod is in the queue anyway."""
    cluster = Cluster(Doorkeeper(hints={}))
    cluster.add_node()
    cluster.pods_client.answer_next("patch_status", RejectedError(422, "Invalid", "no"))
    cluster.add_pod()
    await cluster.run()

    assert "pool" == cluster.where()
    assert "status not written" in caplog.text


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(Reserves("R", unschedulable("r")), id="Reserve"),
        pytest.param(Permits("P", unschedulable("p")), id="Permit"),
        pytest.param(Scores("S", BROKEN), id="Score"),
        pytest.param(Binds(status=failed("b")), id="Bind"),
    ],
)
async def test_4_14_12_any_other_failure_clears_the_nomination(plugin):
    """The node did not take the pod."""
    cluster = Cluster(plugin, Rejects("Not there", ["n9"]))
    cluster.add_node("n0")
    cluster.add_node("n1")
    cluster.add_pod(nominated_node_name="n9")
    await cluster.run()

    assert ("", "") == (cluster.nomination(), cluster.queue.nominator.node_of("default-p0"))


async def test_4_14_13_a_failure_without_an_error_is_not_reported():
    """All Bind plugins passed on: the pod backs off, no event, no condition."""
    cluster = Cluster(Binds(status=SKIP))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()

    assert ([], None, "error backoff") == (cluster.notes, cluster.condition(), cluster.where())
