"""The group's pods one after the other (core 7.5)."""

import asyncio
import logging

import pytest

from berth.framework.attempts.cycle_budget import TURN_SECONDS
from berth.framework.status import SUCCESS, failed, unschedulable
from tests.failures.reporting import reports
from tests.fakes import PostFilters
from tests.scenarios.pod_groups.kit import ASKED_TO_WAIT, UNSCHEDULABLE, Groups, gang_of
from tests.scenarios.pod_groups.plugins import TO_N0, WAIT, NoRoom, NotAllowed, TurnsDown, only


async def test_7_5_1_post_filter_runs_for_a_member_that_fits_nowhere():
    """A member is tried as any other pod is, PostFilter plugins included."""
    room = PostFilters("Room", unschedulable("no room to make"))
    cluster = gang_of(2, only("a"), room, names="ab")
    await cluster.run()

    assert ["Room.post_filter"] == room.calls
    assert "0/1 nodes are available: 1 shut. no room to make" == cluster.message("a")


async def test_7_5_2_after_a_rejection_the_others_are_still_tried():
    """A gang that has enough without the member that fails goes ahead."""
    cluster = gang_of(2, only("a"))
    await cluster.run()

    assert {"b", "c"} == cluster.bound.keys()
    assert "backoff" == cluster.where("a")


async def test_7_5_2_a_nominated_member_counts_as_placed():
    """A member for which room is made stands where it is nominated, so that the gang is complete."""
    cluster = gang_of(2, only("a"), PostFilters("Room", SUCCESS, TO_N0), names="ab")
    await cluster.run()

    assert "waiting for preemption" in cluster.group_condition()[2]


async def test_7_5_2_an_error_stops_everything():
    """Members after the one that broke are not tried, and fail with it."""
    door = only("b", RuntimeError("broken"))
    cluster = gang_of(2, door)
    await cluster.run()
    text = 'failed to schedule other pod from a pod group: running "TurnsDown" filter plugin: broken'
    messages = {name: cluster.message(name) for name in "abc"}

    assert "b" == door.tried[-1]
    assert 'running "TurnsDown" filter plugin: broken' == messages.pop("b")
    assert {text} == set(messages.values())
    assert ("False", "SchedulerError", text) == cluster.group_condition()


@pytest.mark.parametrize(("status", "place"), [(None, "backoff"), (failed("broken"), "error backoff")])
async def test_7_5_3_a_reserve_that_fails_is_the_members_own(status, place):
    """A rejection costs the member its place, an error everybody's."""
    reserve = NoRoom("a", status=status)
    cluster = gang_of(3, reserve)
    await cluster.run()

    assert {} == cluster.bound
    assert place == cluster.where("a")
    assert "reserve a" in reserve.calls
    assert "unreserve a" in reserve.calls


async def test_7_5_3_a_reserve_rejection_reads_as_one_node():
    """The message is about the one node that was chosen."""
    cluster = gang_of(3, NoRoom("a"))
    await cluster.run()

    assert "0/1 nodes are available: 1 no room." == cluster.message("a")
    assert {"NoRoom"} == cluster.queued("a").unschedulable_plugins


async def test_7_5_4_a_permit_that_rejects_is_the_members_own():
    """The others go ahead if they are enough."""
    cluster = gang_of(2, NotAllowed("a", status=unschedulable("not you")))
    await cluster.run()

    assert {"b", "c"} == cluster.bound.keys()
    assert "0/1 nodes are available: 1 not you." == cluster.message("a")


async def test_7_5_4_who_is_asked_to_wait_keeps_the_place():
    """Two that wait and one that completes the gang: all are placed."""
    cluster = gang_of(3, "NodeResourcesFit", cpu="1")
    await cluster.run()

    assert {"a", "b", "c"} == cluster.bound.keys()


@reports(
    "group-fails",
    condition="`PodGroupScheduled=False` of the PodGroup, `PodScheduled` of each pod",
    log="`pod group not scheduled`, when its condition becomes another",
)
async def test_7_5_5_without_a_permit_of_success_the_group_is_unschedulable(caplog):
    """A gang whose pods are all asked to wait does not go."""
    cluster = gang_of(3, only("a"))
    with caplog.at_level(logging.INFO):
        await cluster.run()

    line = f"pod group not scheduled group=default/g reason=Unschedulable message={UNSCHEDULABLE}"
    assert [line] == [each for each in caplog.messages if "pod group not scheduled" in each]
    assert "PodGroupScheduled" == cluster.condition_type
    assert ("False", "Unschedulable", UNSCHEDULABLE) == cluster.group_condition()
    assert "PodScheduled" == cluster.condition("b").type
    assert [f"{UNSCHEDULABLE}, {ASKED_TO_WAIT}"] * 2 == [cluster.message("b"), cluster.message("c")]


async def test_7_5_5_a_preemption_required_before_the_last_success_keeps_the_group_waiting():
    """A later Success cannot undo it."""
    cluster = gang_of(None, only("c"), PostFilters("Room", SUCCESS, TO_N0), names="cab")
    await cluster.run()

    assert ("False", "Unschedulable") == cluster.group_condition()[:2]
    assert 1 == cluster.attempts("waiting_on_preemption")


async def test_7_5_5_a_preemption_required_only_afterwards_leaves_the_group_scheduled():
    """The status is that of the last member whose Permit said Success."""
    room = PostFilters("Room", SUCCESS, TO_N0)
    waits = NotAllowed("c", status=WAIT)
    cluster = Groups(only("c"), room, waits)
    cluster.add_node("n0")
    cluster.add_group()
    async with cluster.paused():
        cluster.add_members("a", "b", "c")
        await cluster.turn()

        assert {"a", "b"} == cluster.bound.keys()
        assert 1 == cluster.attempts("scheduled")
        text = f"{UNSCHEDULABLE}, hold on, one or more plugins asked to wait and no plugin rejected pod"
        assert text == cluster.message("c")


async def test_7_5_6_members_are_taken_back_in_reverse_order():
    """Unreserve is called for the last member first, and nothing stays in the snapshot."""
    reserve = NoRoom()
    cluster = gang_of(4, reserve, only("d"), names="abcd")
    await cluster.run()
    reserved = [call.partition(" ")[2] for call in reserve.calls if call.startswith("reserve")]
    let_go = [call.partition(" ")[2] for call in reserve.calls if call.startswith("unreserve")]

    assert 3 == len(reserved)
    assert reserved[::-1] == let_go
    assert 0 == sum(len(pods) for pods in cluster.snapshot.pods)


class Toils(TurnsDown):
    """A filter that takes its time."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def filter(self, state, pod, nodes):
        asyncio.get_running_loop().work(self.seconds)
        return super().filter(state, pod, nodes)


async def test_the_rest_goes_on_while_a_group_is_tried():
    """In a long cycle everything else has its turn: a large group holds up neither lease nor bindings."""
    turns = []
    door = Toils(2 * TURN_SECONDS)
    cluster = gang_of(3, door)

    async def others():
        while len(door.tried) < 3:
            turns.append(len(door.tried))
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await cluster.run()
    await task

    assert {1, 2} <= set(turns)


async def test_a_group_ends_with_its_budget():
    """None of its pods is placed, and the error names the budget: that of its pods together."""
    cluster = gang_of(4, Toils(0.3), names="abcd")
    await cluster.run()

    assert not cluster.bound
    error = "scheduling cycle exceeded its budget of 0.4s of CPU in TurnsDown"
    assert all(cluster.message(name).endswith(error) for name in "abcd")
