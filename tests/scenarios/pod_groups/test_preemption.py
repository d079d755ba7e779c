"""Room for a whole group (core 7.4 step 8, 6.8)."""

from datetime import UTC, datetime

import pytest

from berth.framework.status import unschedulable
from berth.objects.api_object import ObjectMeta
from berth.objects.label_selector import LabelSelector
from berth.objects.workloads import DisruptionBudgetStatus, PodDisruptionBudget, WorkloadSpec
from tests.fakes import PostFilters
from tests.scenarios.pod_groups.kit import PREEMPTION, UNSCHEDULABLE, Groups, group
from tests.scenarios.pod_groups.plugins import TurnsDown

FIT = ("GangScheduling", "NodeResourcesFit", "DefaultPreemption")
BOTH = {**PREEMPTION, "TopologyAwareWorkloadScheduling": True}
EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def crowded(*plugins, nodes=3, gates=PREEMPTION, **options):
    """Nodes of one CPU, each with room for one pod."""
    cluster = Groups(*(plugins or FIT), gates=gates, **options)
    for i in range(nodes):
        cluster.add_node(f"n{i}", cpu="1")
    return cluster


def victim(cluster, name, node, *, start=EARLY, group=None, labels=None, **fields):
    """A pod on a node, which it fills."""
    more = {"group": group} if group else {}
    add = cluster.add_member if group else cluster.add_pod
    add(name, node_name=node, cpu="1", labels=labels, **more, **fields)
    return cluster.change_pod(name, status={"start_time": start, "phase": "Running"})


def wants(cluster, count=2, priority=10, names="ab", **fields):
    """A gang that needs that many CPUs, with a priority of its own."""
    cluster.add_group(min_count=count, priority=priority, **fields)
    cluster.add_members(*names[:count], cpu="1")


def budget(allowed=0, **labels):
    """A disruption budget that allows so many evictions of pods with these labels."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="budget", namespace="default", uid="budget"),
        spec=WorkloadSpec(LabelSelector(labels)),
        status=DisruptionBudgetStatus(allowed),
    )


class Room(PostFilters):
    """A PostFilter plugin that never makes any, and comes before preemption."""

    def __init__(self):
        super().__init__("Room", unschedulable("none"))


def evicted(cluster):
    """The pods that were deleted by the scheduler, in order."""
    return [call.pod.partition("/")[2] for call in cluster.calls("delete")]


async def test_7_4_8_and_6_8_9_victims_leave_and_the_group_comes_in():
    """The least important pods go, their conditions say for whom, and the gang is bound in their place."""
    cluster = crowded()
    for i, name in enumerate(("x", "y", "z")):
        victim(cluster, name, f"n{i}", priority=i)
    cluster.api.grace_seconds = 5.0
    wants(cluster)
    await cluster.run()
    note = "Preempted by podgroup uid-g on node cluster"

    assert {"x", "y"} == set(evicted(cluster))
    assert ("Preempted", "x", note) in cluster.notes
    assert "default-scheduler: preempting to accommodate a higher priority podgroup" == (
        cluster.condition("x", "DisruptionTarget").message
    )
    assert ("False", "Unschedulable", UNSCHEDULABLE) == cluster.group_condition()
    assert 1 == cluster.attempts("waiting_on_preemption")
    await cluster.tick(15)

    assert {"a", "b", "z"} == cluster.bound.keys()
    assert {"x", "y"} == set(evicted(cluster))


async def test_7_4_8_and_7_7_6_who_fits_beside_the_victims_is_nominated():
    """A member with a node of its own keeps it for the time that the others' room is made."""
    cluster = crowded(nodes=2)
    victim(cluster, "x", "n0")
    cluster.api.grace_seconds = 5.0
    wants(cluster)
    await cluster.run()

    assert ["", "n1"] == sorted(cluster.nomination(name) for name in "ab")


async def test_7_4_8_what_stands_in_the_way_is_added_to_the_groups_reasons():
    """Without victims the group's message says so, too."""
    cluster = crowded(nodes=1)
    wants(cluster)
    await cluster.run()

    text = f"{UNSCHEDULABLE}, No preemption victims found for incoming preemptor"
    assert ("False", "Unschedulable", text) == cluster.group_condition()


async def test_6_8_1_without_the_plugin_no_pod_is_evicted():
    """The group's condition says what is missing."""
    cluster = crowded("GangScheduling", "NodeResourcesFit")
    for i in range(3):
        victim(cluster, f"x{i}", f"n{i}")
    wants(cluster)
    await cluster.run()
    text = "default preemption plugin is not registered, workload aware preemption is disabled"

    assert f"{UNSCHEDULABLE}, {text}" == cluster.group_condition()[2]
    assert [] == evicted(cluster)


async def test_6_8_1_a_group_that_cannot_be_read_is_an_error():
    """A group that went while its pods are tried has no priority to preempt with."""
    cluster = crowded(*FIT, TurnsDown(a=unschedulable("shut")))
    cluster.add_group(min_count=1)
    async with cluster.paused():
        cluster.add_member("a", cpu="1")
        cluster.remove(group(min_count=1))
        await cluster.turn()

        assert 1 == cluster.attempts("error")
        text = 'failed to get pod group object: podgroup.scheduling.k8s.io "g" not found'
        assert text == cluster.message("a")


async def test_6_8_1_groups_with_topology_constraints_do_not_preempt():
    """They would have to be tried in every domain."""
    cluster = crowded(gates=BOTH)
    for i in range(3):
        victim(cluster, f"x{i}", f"n{i}")
    wants(cluster, topology="zone")
    cluster.change_node("n0", labels={"zone": "z"})
    cluster.change_node("n1", labels={"zone": "z"})
    await cluster.tick(2)
    text = "workload aware preemption is not supported for pod groups with scheduling constraints"

    assert text in cluster.group_condition()[2]
    assert [] == evicted(cluster)


async def test_6_8_2_one_member_that_never_preempts_speaks_for_all():
    """preemptionPolicy Never of any pod keeps the group from it."""
    cluster = crowded()
    for i in range(3):
        victim(cluster, f"x{i}", f"n{i}")
    cluster.add_group(min_count=2, priority=10)
    cluster.add_member("a", cpu="1")
    cluster.add_member("b", cpu="1", preemption_policy="Never")
    await cluster.run()

    text = f"{UNSCHEDULABLE}, not eligible due to preemptionPolicy=Never."
    assert text == cluster.group_condition()[2]
    assert [] == evicted(cluster)


async def test_6_8_3_a_group_that_is_disrupted_as_a_whole_goes_as_a_whole():
    """For one CPU all pods of such a group go, also those whose nodes are not needed."""
    cluster = crowded()
    cluster.add_group("w", disruptionMode="PodGroup", priority=1)
    victim(cluster, "x", "n0", group="w")
    victim(cluster, "y", "n1", group="w")
    victim(cluster, "z", "n2", priority=50)
    wants(cluster, 1, names="a")
    await cluster.run()

    assert {"x", "y"} == set(evicted(cluster))


async def test_6_8_3_pods_of_other_groups_go_one_by_one():
    """Disruption mode Pod makes each pod a unit of its own, with its group's priority."""
    cluster = crowded()
    cluster.add_group("w", disruptionMode="Pod", priority=2)
    cluster.add_group("v", disruptionMode="Pod", priority=1)
    victim(cluster, "x", "n0", group="w", priority=1)
    victim(cluster, "y", "n1", group="v", priority=2)
    victim(cluster, "z", "n2", priority=50)
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["y"] == evicted(cluster)


async def test_pods_of_a_more_important_group_are_no_victims():
    """kubernetes/kubernetes#139030: the group's priority counts for its pods, whatever theirs is."""
    cluster = crowded(nodes=1)
    cluster.add_group("w", disruptionMode="Pod", priority=1000)
    victim(cluster, "x", "n0", group="w", priority=10)
    cluster.add_group(min_count=1, priority=500)
    cluster.add_member("a", cpu="1", priority=500)
    await cluster.run()

    assert [] == evicted(cluster)


@pytest.mark.parametrize(("priority", "victims"), [(10, []), (11, ["x"]), (None, [])])
async def test_6_8_4_only_units_of_lower_priority_are_eligible(priority, victims):
    """The group's own priority counts, none being 0; an equal is no victim."""
    cluster = crowded(nodes=1)
    victim(cluster, "x", "n0", priority=10)
    fields = {} if priority is None else {"priority": priority}
    cluster.add_group(min_count=1, **fields)
    cluster.add_member("a", cpu="1", priority=99)
    await cluster.run()

    assert victims == evicted(cluster)


async def test_6_8_4_the_groups_own_pods_are_no_victims():
    """A gang that wants one more CPU does not take it from itself."""
    cluster = crowded(nodes=1)
    cluster.add_group(min_count=2, priority=10)
    victim(cluster, "a", "n0", group="g")
    cluster.add_member("b", cpu="1")
    await cluster.run()

    assert [] == evicted(cluster)


async def test_6_8_5_a_group_that_fits_nowhere_evicts_no_pod():
    """Not even all victims together leave room enough: none goes, and the snapshot is as it was."""
    cluster = crowded(nodes=2)
    victim(cluster, "x", "n0")
    victim(cluster, "y", "n1")
    cluster.add_group(min_count=1, priority=10)
    cluster.add_member("a", cpu="2")
    await cluster.run()

    assert [] == evicted(cluster)
    assert [1, 1] == [len(pods) for pods in cluster.snapshot.pods]
    assert f"{UNSCHEDULABLE}, {UNSCHEDULABLE}" == cluster.group_condition()[2]


async def test_6_8_5_victims_are_tried_with_the_placement_algorithm():
    """Whether the group would fit is asked of the algorithm that schedules it, and has its message."""
    cluster = crowded(nodes=1, gates=BOTH)
    victim(cluster, "x", "n0")
    cluster.add_group(min_count=1, priority=10)
    cluster.add_member("a", cpu="2")
    await cluster.run()

    text = f"0/1 placements are available, first placement status: {UNSCHEDULABLE}"
    assert f"{text}, {text}" == cluster.group_condition()[2]


async def test_6_8_5_post_filter_plugins_are_not_asked_about_victims():
    """Once for the trial before, and not again while victims are tried."""
    room = Room()
    cluster = crowded(*FIT, room, nodes=1)
    victim(cluster, "x", "n0")
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["x"] == evicted(cluster)
    assert ["Room.post_filter"] == room.calls


@pytest.mark.parametrize(
    ("first", "second", "gone"),
    [
        pytest.param({"priority": 1}, {"priority": 2}, "x", id="lower priority"),
        pytest.param({"start": LATE}, {"start": EARLY}, "x", id="started later"),
        pytest.param({}, {"group": "w"}, "x", id="single before group"),
        pytest.param({"group": "w"}, {}, "y", id="whichever comes first"),
    ],
)
async def test_6_8_6_the_least_important_goes(first, second, gone):
    """Priority counts first, then belonging to a group, then age."""
    cluster = crowded(nodes=2)
    cluster.add_group("w")
    victim(cluster, "x", "n0", **first)
    victim(cluster, "y", "n1", **second)
    wants(cluster, 1, names="a")
    await cluster.run()

    assert [gone] == evicted(cluster)


async def test_6_8_6_the_smaller_group_goes():
    """Of two groups that go as a whole, the one with more pods is more important."""
    cluster = crowded(nodes=3)
    for name in ("big", "small"):
        cluster.add_group(name, disruptionMode="PodGroup", priority=1)
    victim(cluster, "x", "n0", group="small", start=EARLY)
    victim(cluster, "y", "n1", group="big", start=LATE)
    victim(cluster, "z", "n2", group="big", start=LATE)
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["x"] == evicted(cluster)


async def test_6_8_7_and_6_8_8_a_budget_protects_its_pods():
    """A pod whose budget is used up stays where another can go, although it is less important."""
    cluster = crowded(nodes=2)
    cluster.add(budget(app="db"))
    victim(cluster, "x", "n0", priority=1, labels={"app": "db"})
    victim(cluster, "y", "n1", priority=2)
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["y"] == evicted(cluster)


async def test_6_8_8_what_can_stay_stays():
    """Of three victims only as many go as the group needs."""
    cluster = crowded()
    for i, name in enumerate(("x", "y", "z")):
        victim(cluster, name, f"n{i}", priority=i)
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["x"] == evicted(cluster)


async def test_6_8_9_a_failed_eviction_brings_the_group_back():
    """All of its pods are activated, and the victim is evicted with the next try, at once."""
    cluster = crowded(nodes=1)
    victim(cluster, "x", "n0")
    cluster.pods_client.answer_next("delete", RuntimeError("no"))
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["x", "x"] == evicted(cluster)
    assert {"a": "n0"} == cluster.bound
    assert {cluster.now} == set(cluster.tried_at)


async def test_6_8_9_while_victims_go_the_group_is_held_back():
    """A member that comes out of its backoff meets the gate of preemption, and so do all."""
    cluster = crowded(nodes=1)
    victim(cluster, "x", "n0")
    cluster.pods_client.hold("delete")
    wants(cluster, 1, names="a")
    await cluster.tick(5)

    assert "gated" == cluster.where("a")
    assert "DefaultPreemption" == cluster.queued("a").gating_plugin
    cluster.pods_client.release("delete")
    await cluster.run()

    assert {"a": "n0"} == cluster.bound


async def test_6_8_9_synchronous_preemption_waits_for_the_evictions():
    """With SchedulerAsyncPreemption off the victims are gone when the cycle ends."""
    cluster = crowded(nodes=1, gates={**PREEMPTION, "SchedulerAsyncPreemption": False})
    victim(cluster, "x", "n0")
    wants(cluster, 1, names="a")
    await cluster.run()

    assert ["x"] == evicted(cluster)
    assert 1 == cluster.attempts("waiting_on_preemption")
