"""From a popped pod to its whole group (core 7.4)."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from berth.framework.status import SUCCESS, unschedulable
from berth.queue.scheduling_queue import SchedulingQueue
from tests.failures.reporting import reports
from tests.fakes import Reserves
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import Doorkeeper, Gate
from tests.scenarios.pod_groups.kit import Groups
from tests.scenarios.pod_groups.plugins import TurnsDown

A_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def looked_at(door):
    """The pods that the filter is asked about from now on, in order."""
    seen = []
    door.during = lambda pod: seen.append(pod.name)
    return seen


async def test_7_4_1_without_a_state_the_popped_pod_fails():
    """The pod goes back as one whose attempt broke, and the error says why."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_group()
    async with cluster.paused():
        cluster.add_member("a")
        cluster.cache.pod_groups.delete(cluster.pod("a"))
        await cluster.turn()

        assert "error backoff" == cluster.where("a")
        assert "pod group state not found for pod group default/g" == cluster.message("a")


async def test_7_4_2_one_pop_takes_the_whole_group():
    """Members that wait are tried with the one that was popped, whatever their backoff; gated ones not."""
    door, gate = Doorkeeper(status=SUCCESS), Gate("Gate", "c")
    cluster = Groups(door, gate)
    cluster.add_node()
    cluster.add_group()
    seen = looked_at(door)
    async with cluster.paused():
        cluster.add_members("a", "b", "c")
        await cluster.turn()

        assert ["a", "b"] == seen
        assert "gated" == cluster.where("c")
        assert cluster.queue.pop() is None


async def test_7_4_2_members_in_backoff_are_fetched():
    """A member that comes later brings the others back before their time."""
    door = Doorkeeper()
    cluster = Groups(door)
    cluster.add_node()
    cluster.add_group()
    cluster.add_member("a")
    await cluster.run()
    assert "backoff" == cluster.where("a")
    door.open()
    seen = looked_at(door)
    await cluster.tick(0.5)
    cluster.add_member("b")
    await cluster.run()

    assert {"a": "n0", "b": "n0"} == cluster.bound
    assert ["a", "b"] == seen


async def test_7_4_3_members_are_tried_by_priority_and_then_by_their_first_attempt():
    """Higher priority goes first; among equals, who became ready first."""
    door = Doorkeeper(status=SUCCESS)
    cluster = Groups(door)
    cluster.add_node()
    cluster.add_group()
    seen = looked_at(door)
    async with cluster.paused():
        for name, priority in (("b", 0), ("a", 0), ("c", 5)):
            cluster.add_member(name, priority=priority)
            await cluster.tick(1)
        await cluster.turn()

        assert ["c", "b", "a"] == seen


async def test_7_4_4_members_of_two_profiles_fail_together():
    """Every member's condition says that one profile has to schedule them all."""
    cluster = Groups(profiles={PROFILE: None, "other": None})
    cluster.add_node()
    cluster.add_group()
    async with cluster.paused():
        cluster.add_member("a")
        cluster.add_member("b", scheduler_name="other")
        await cluster.turn()
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            f'got: "{PROFILE}" and "other"'
        )

        assert [text, text] == [cluster.message("a"), cluster.message("b")]
        assert ["error backoff"] * 2 == [cluster.where("a"), cluster.where("b")]
        assert "SchedulerError" == cluster.condition("a").reason


async def test_7_4_4_a_profile_that_there_is_none_of():
    """A member whose profile is unknown fails with its name."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_group()
    async with cluster.paused():
        cluster.add_member("a")
        stray = cluster.change_pod("a", spec={"scheduler_name": "gone"})
        info = cluster.queue.pop()
        info.pod = stray
        await cluster.core.schedule_one.schedule(info)
        await cluster.run()

        assert 'profile not found for scheduler name "gone"' == cluster.message("a")


async def test_7_4_5_members_on_their_way_out_are_dropped():
    """A terminating member is reported as such and not tried, the rest is."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_group()
    async with cluster.paused():
        cluster.add_members("a", "b")
        cluster.add(_replaced(cluster.pod("a"), deletion_timestamp=A_MOMENT))
        await cluster.turn()

        assert {"b": "n0"} == cluster.bound
        assert ("FailedScheduling", "a", "skip schedule deleting pod: default/a") in cluster.notes
        assert "nowhere" == cluster.where("a")


async def test_7_4_5_without_members_the_cycle_ends():
    """A group of which no pod is left to be tried has no result."""
    cluster = Groups()
    cluster.add_node()
    cluster.add_group()
    async with cluster.paused():
        cluster.add_member("a")
        cluster.add(_replaced(cluster.pod("a"), deletion_timestamp=A_MOMENT))
        await cluster.turn()

        assert cluster.group_condition() is None
        assert 0 == cluster.attempts("scheduled") + cluster.attempts("unschedulable")


@reports("attempt-breaks", log="`pod-group cycle broke off`, with a traceback")
async def test_7_4_6_a_snapshot_that_cannot_be_taken_fails_the_group(monkeypatch, caplog):
    """Every member fails with that error, and the group's condition says so."""

    def broken(_snapshot):
        raise RuntimeError("snapshot state is not consistent")

    cluster = Groups()
    cluster.add_node()
    cluster.add_group()
    async with cluster.paused():
        cluster.add_members("a", "b")
        monkeypatch.setattr(cluster.cache, "update_snapshot", broken)
        await cluster.turn()
        monkeypatch.undo()

        assert ["snapshot state is not consistent"] * 2 == [cluster.message(name) for name in "ab"]
        assert "SchedulerError" == cluster.group_condition()[1]
        assert "pod-group cycle broke off group=default/g" in caplog.text


async def test_7_4_9_no_pod_stays_in_flight():
    """After the cycle every member is bound or waits again; the queue holds nothing back."""
    door = TurnsDown(b=unschedulable("shut"))
    cluster = Groups("GangScheduling", door)
    cluster.add_node()
    cluster.add_gang(2, "a", "b", "c")
    await cluster.run()

    assert [] == list(cluster.queue.in_flight())
    assert {"a", "c"} == cluster.bound.keys()
    assert "backoff" == cluster.where("b")


@pytest.mark.parametrize(
    ("plugins", "counts"), [((), [2, 1]), ((Reserves("R", unschedulable("no")),), [2, 2])]
)
async def test_7_4_7_a_pod_on_trial_is_not_nominated(plugins, counts):
    """A nomination is gone while its pod stands on a node by way of trial, and back once it is taken back."""
    door = Doorkeeper(status=SUCCESS)
    cluster = Groups("GangScheduling", door, *plugins)
    cluster.add_node()
    cluster.add_gang(2)
    seen = {}
    door.during = lambda pod: seen.setdefault(pod.name, len(nominated(cluster.queue)))
    async with cluster.paused():
        cluster.add_members("a", "b", nominated_node_name="n0")
        await cluster.turn()

        assert counts == list(seen.values())


def nominated(queue: SchedulingQueue):
    return [pod.name for pod in queue.nominator.nominated_pods_for_node("n0")]


def _replaced(pod, **metadata):
    return replace(pod, metadata=replace(pod.metadata, **metadata))
