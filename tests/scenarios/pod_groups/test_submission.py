"""What becomes of each member (core 7.7)."""

import logging

import pytest

from berth.client.errors import RejectedError
from berth.framework.status import unschedulable
from tests.failures.reporting import reports
from tests.fakes import PostFilters
from tests.scenarios.pod_groups.kit import ASKED_TO_WAIT, UNSCHEDULABLE, Groups, gang_of
from tests.scenarios.pod_groups.plugins import WAIT, NotAllowed, RefusesInEarnest, TurnsDown, only, room_for

WAITING = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"


async def test_7_7_1_and_7_7_2_of_an_error_each_member_has_its_share():
    """The one that broke has its own text, those that fitted and those not tried have the group's."""
    cluster = gang_of(3, only("b", RuntimeError("broken")))
    await cluster.run()
    own = 'running "TurnsDown" filter plugin: broken'
    text = f"failed to schedule other pod from a pod group: {own}"

    assert {"a": text, "b": own, "c": text} == {name: cluster.message(name) for name in "abc"}
    assert ["error backoff"] * 3 == [cluster.where(name) for name in "abc"]
    assert ["SchedulerError"] * 3 == [cluster.condition(name).reason for name in "abc"]


async def test_7_7_3_members_of_a_group_that_fits_are_bound():
    """Each by a binding cycle of its own."""
    cluster = gang_of(3)
    await cluster.run()

    assert {"a": "n0", "b": "n0", "c": "n0"} == cluster.bound
    assert 3 == len(cluster.calls("bind"))


async def test_7_7_3_a_member_that_fails_in_earnest_fails_alone():
    """What Reserve refuses after the trial goes back; the others are not touched."""
    cluster = Groups(RefusesInEarnest("a"))
    cluster.add_node("n0")
    cluster.add_group()
    cluster.watch.hold()
    cluster.add_members("a", "b")
    cluster.watch.release()
    await cluster.run()

    assert {"b": "n0"} == cluster.bound
    assert "error backoff" == cluster.where("a")
    assert (["a"], [], ["b"]) == cluster.state()


async def test_7_7_4_a_member_that_requires_preemption_waits_for_the_next_cycle():
    """The group is scheduled without it, and it keeps no nomination."""
    cluster = Groups(*room_for("c"), NotAllowed("c", status=WAIT))
    cluster.add_node("n0")
    cluster.add_group()
    async with cluster.paused():
        cluster.add_members("a", "b", "c")
        await cluster.turn()

        assert {"a", "b"} == cluster.bound.keys()
        assert "" == cluster.nomination("c")
        assert "error backoff" == cluster.where("c")


async def test_7_7_5_and_7_7_9_a_member_that_failed_keeps_its_own_status():
    """The rest of the group proceeds; the member's condition says what it met."""
    cluster = gang_of(2, only("c"))
    await cluster.run()

    assert {"a", "b"} == cluster.bound.keys()
    assert "0/1 nodes are available: 1 shut." == cluster.message("c")
    assert {"TurnsDown"} == cluster.queued("c").unschedulable_plugins


async def test_7_7_6_and_7_7_7_and_11_9_5_a_group_that_waits_is_nominated():
    """Members that fit are nominated to their hosts, the one that needs room to the node of its victims."""
    cluster = Groups("GangScheduling", *room_for("a"))
    cluster.add_node("n0")
    cluster.add_gang(3)
    async with cluster.paused():
        cluster.add_member("a", priority=5)
        cluster.add_members("b", "c")
        await cluster.turn()

        assert ["n0"] * 3 == [cluster.nomination(name) for name in "abc"]
        assert [WAITING, WAITING] == [cluster.message("b"), cluster.message("c")]
        assert "0/1 nodes are available: 1 shut." == cluster.message("a")
        assert ("False", "Unschedulable", WAITING) == cluster.group_condition()
        assert 1 == cluster.attempts("waiting_on_preemption")


async def test_7_7_8_who_fits_a_group_that_does_not_goes_back_with_it():
    """The text is the group's and then Permit's; a nomination is taken back."""
    cluster = gang_of(3, only("c"), nominated_node_name="n0")
    await cluster.run()

    assert [f"{UNSCHEDULABLE}, {ASKED_TO_WAIT}"] * 2 == [cluster.message("a"), cluster.message("b")]
    assert ["", ""] == [cluster.nomination("a"), cluster.nomination("b")]
    assert ["Unschedulable"] * 2 == [cluster.condition(name).reason for name in "ab"]


async def test_7_7_9_a_rejected_member_keeps_what_post_filter_decided():
    """Its nomination is what its own PostFilter said."""
    keeps = PostFilters("Room", unschedulable("later"))
    cluster = gang_of(3, only("c"), keeps, nominated_node_name="n0")
    await cluster.run()

    assert "n0" == cluster.nomination("c")
    assert "0/1 nodes are available: 1 shut. later" == cluster.message("c")


async def test_7_7_10_members_back_off_by_what_they_met():
    """No plugin is to blame for the group's failure, one is for a pod's own; no event moves either."""
    cluster = gang_of(3, only("c"))
    await cluster.run()
    cluster.add_node("n1")

    assert ["error backoff", "error backoff", "backoff"] == [cluster.where(name) for name in "abc"]
    assert (1, 0) == _counts(cluster.queued("a"))
    assert (0, 1) == _counts(cluster.queued("c"))


async def test_7_7_10_no_pod_is_tried_before_the_backoff_is_over():
    """With nothing else to do, a group is tried after 1, 2, 4 and 8 seconds, not over and over."""
    cluster = gang_of(3, only("c"))
    await cluster.tick(20)

    assert [0, 2, 5, 10, 19] == [round(at - cluster.tried_at[0]) for at in cluster.tried_at]


async def test_7_7_11_the_last_member_lets_all_others_go():
    """In earnest, too, all but the last are asked to wait; none waits for longer than that."""
    cluster = gang_of(3)
    await cluster.run()
    waited = [record.pod.name for record in cluster.records if _waited(record)]

    assert {"a", "b", "c"} == cluster.bound.keys()
    assert 2 == len(waited)
    assert 0 == len(cluster.waiting_pods)


@pytest.mark.parametrize(
    ("door", "condition", "result"),
    [
        pytest.param(TurnsDown(), ("True", "Scheduled", ""), "scheduled", id="success"),
        pytest.param(
            TurnsDown(a=unschedulable("shut")),
            ("False", "Unschedulable", UNSCHEDULABLE),
            "unschedulable",
            id="rejected",
        ),
        pytest.param(
            TurnsDown(a=RuntimeError("broken")),
            (
                "False",
                "SchedulerError",
                'failed to schedule other pod from a pod group: running "TurnsDown" filter plugin: broken',
            ),
            "error",
            id="broken",
        ),
    ],
)
async def test_7_7_12_and_7_7_15_the_outcome_is_reported(door, condition, result):
    """Owners read a condition, operators a metric."""
    cluster = gang_of(1, door, names="a")
    await cluster.run()

    assert condition == cluster.group_condition()
    assert 1 == cluster.attempts(result)
    assert 1 == cluster.metric("podgroup_scheduling_algorithm_duration_seconds_count")


async def test_7_7_12_the_condition_names_the_generation():
    """observedGeneration is that of the group that was tried."""
    cluster = Groups("GangScheduling", TurnsDown())
    cluster.add_node("n0")
    cluster.add_group(min_count=1, generation=7)
    cluster.add_member("a")
    await cluster.run()
    (call,) = cluster.calls("write_condition")

    assert 7 == call.what.observed_generation


async def test_7_7_13_a_group_once_scheduled_stays_so():
    """A pod that comes later and fits nowhere changes nothing about it."""
    cluster = gang_of(2, only("c"), names="ab")
    await cluster.run()
    cluster.add_member("c")
    await cluster.run()

    assert "0/1 nodes are available: 1 shut." == cluster.message("c")
    assert ("True", "Scheduled", "") == cluster.group_condition()


async def test_7_7_14_the_same_again_is_not_written():
    """A group that fails in the same way three times has its condition written once."""
    cluster = gang_of(3, only("c"))
    await cluster.tick(6)

    assert 3 == cluster.attempts("unschedulable")
    assert 1 == len(cluster.calls("write_condition"))


async def test_7_7_14_what_could_not_be_written_is_written_with_the_next_attempt():
    """A failed write leaves the condition as it was, and is tried again."""
    cluster = gang_of(3, only("c"))
    cluster.groups_client.failure = RuntimeError("no")
    await cluster.run()
    assert cluster.group_condition() is None
    cluster.groups_client.failure = None
    await cluster.tick(3)

    assert ("False", "Unschedulable", UNSCHEDULABLE) == cluster.group_condition()


@reports(
    "group-status-not-written",
    log="`pod group's status not written`, with group and cause; it is tried again",
)
async def test_7_7_14_a_status_that_is_not_written_is_tried_again(caplog):
    """The next attempt of the group writes what the API server refused."""
    cluster = gang_of(3, only("c"))
    cluster.groups_client.failure = RejectedError(403, "Forbidden", "not today")
    await cluster.tick(6)
    assert "pod group's status not written group=default/g err=403 Forbidden: not today" in caplog.text
    cluster.groups_client.failure = None
    await cluster.tick(6)

    assert ("False", "Unschedulable") == cluster.group_condition()[:2]


@reports("group-gone", log="`pod group not found, its condition is not written`")
async def test_7_7_14_a_group_that_is_gone_is_logged(caplog):
    """Its pods are scheduled all the same where they need no gang."""
    cluster = Groups(TurnsDown())
    cluster.add_node("n0")
    with caplog.at_level(logging.ERROR):
        cluster.add_member("a")
        await cluster.run()

    assert {"a": "n0"} == cluster.bound
    assert "pod group not found, its condition is not written group=default/g" in caplog.text


async def test_7_7_16_waiting_for_the_others_is_no_part_of_an_attempt():
    """From the end of its own algorithm to the submission a pod's time stands still."""
    cluster = gang_of(3)
    await cluster.run()
    spans = {record.pod.name: record for record in cluster.records}

    assert all(record.paused_ns > 0 for record in spans.values())
    assert all(record.ended_ns - record.dequeued_ns > record.paused_ns for record in spans.values())


def _counts(record):
    return record.consecutive_errors_count, record.unschedulable_count


def _waited(record):
    return any(interval.name == "WaitOnPermit" for interval in record.intervals)
