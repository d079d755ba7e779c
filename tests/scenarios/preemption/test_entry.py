"""Who preempts at all, and what comes of it (core 6.1 to 6.3)."""

import pytest

from berth.framework.status import unresolvable, unschedulable
from berth.objects.api_object import ObjectMeta
from berth.objects.pod_groups import PodGroup, PodGroupSpec, SchedulingConstraints
from berth.objects.pods.pod import PodCondition
from berth.objects.pods.pod_spec import SchedulingGroup
from tests.failures.reporting import reports
from tests.fakes import PreFilters, Rejects
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.preemption.stage import HIGH, LOW, MIDDLE, arrives, crowded, evicted, message_of, place

GROUP = SchedulingGroup("g")
TOPOLOGY_AWARE = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
TOGETHER = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


async def post_filter(cluster, **fields):
    """What DefaultPreemption says of the pod in its first cycle; pods of groups come back without a pause."""
    async with cluster.paused():
        cluster.add_pod("high", cpu="4", priority=HIGH, **fields)
        await cluster.turn()
        said = message_of(cluster)
        cluster.delete_pod("high")
    return said


def group(**spec):
    """The group of the pods here."""
    metadata = ObjectMeta(name="g", namespace="default", uid="g")
    return PodGroup(metadata=metadata, spec=PodGroupSpec(**spec))


async def test_6_1_1_a_pod_of_a_group_that_goes_to_one_place_evicts_no_pod():
    """The message says why, and the attempt ends there."""
    cluster = crowded(gates=TOPOLOGY_AWARE)
    cluster.add(group(scheduling_constraints=SchedulingConstraints()))
    place(cluster, "low")
    said = await post_filter(cluster, scheduling_group=GROUP)

    expected = "not eligible due to placement-based pod group scheduling limitation"
    assert (expected, []) == (said, evicted(cluster))


async def test_6_1_1_a_pod_whose_group_is_gone_evicts_no_pod():
    """The group was deleted in the middle of the cycle."""
    turns_down = Rejects("Full", {"n0": "full"})
    cluster = crowded_with(turns_down, gates=TOPOLOGY_AWARE)
    stored = cluster.add(group())
    turns_down.note = lambda _point: cluster.remove(stored)
    place(cluster, "low")
    said = await post_filter(cluster, scheduling_group=GROUP)

    assert ("pod group for pod not found", []) == (said, evicted(cluster))


async def test_6_1_2_where_groups_preempt_together_their_pods_do_not_alone():
    """Nor is anybody evicted."""
    cluster = crowded(gates=TOGETHER)
    cluster.add(group())
    place(cluster, "low")
    said = await post_filter(cluster, scheduling_group=GROUP)

    assert ("not eligible due to workload aware preemption enabled", []) == (said, evicted(cluster))


async def test_6_8_without_the_gate_pods_of_a_group_preempt_one_by_one():
    """A group's pod evicts as any other does."""
    cluster = crowded(gates={"GenericWorkload": True})
    place(cluster, "low")
    await post_filter(cluster, scheduling_group=GROUP)

    assert ["low"] == evicted(cluster)


async def test_6_1_3_and_11_8_2_policy_never_is_reported_at_the_end_of_the_message():
    """After what another PostFilter plugin says, joined by a comma; no nomination is written."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster, preemption_policy="Never")
    message = cluster.condition("high").message

    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, ")
    assert message.endswith(", preemption: not eligible due to preemptionPolicy=Never.")
    assert ([], "") == (evicted(cluster), cluster.nomination("high"))


async def test_6_1_4_every_attempt_is_counted():
    """Whether a pod is evicted or not."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster, preemption_policy="Never")
    await arrives(cluster, "higher")

    assert cluster.metric("preemption_attempts_total") == 2


async def test_6_2_1_a_preemptor_that_is_gone_by_now_evicts_no_pod():
    """It was deleted in the middle of its own cycle."""
    turns_down = Rejects("Full", {"n0": "full"})
    cluster = crowded_with(turns_down)
    place(cluster, "low")
    turns_down.note = lambda _point: cluster.delete_pod("high") if cluster.pod("high") else None
    await arrives(cluster)

    assert ([], 1) == (evicted(cluster), cluster.metric("preemption_attempts_total"))
    assert [] == list(cluster.queue.nominator.nodes_with_nominations())


def crowded_with(*plugins, nodes=1, **options):
    """A cluster in which only these plugins and preemption have a say."""
    cluster = Cluster(*plugins, "DefaultPreemption", **options)
    cluster.api.grace_seconds = 60
    for i in range(nodes):
        cluster.add_node(f"n{i}")
    return cluster


async def test_6_2_2_who_is_not_eligible_keeps_the_nomination():
    """A pod that may not preempt was promised a node by another component."""
    cluster = crowded(2)
    place(cluster, "low")
    place(cluster, "other", "n1")
    await arrives(cluster, preemption_policy="Never", nominated_node_name="n1")

    assert "n1" == cluster.nomination("high")
    assert ["n1"] == list(cluster.queue.nominator.nodes_with_nominations())


async def test_6_2_3_and_11_8_1_only_nodes_that_are_merely_unschedulable_are_looked_at():
    """Of three nodes one says U&U, one Unschedulable, one nothing: only the second is tried."""
    cluster = crowded_with(
        PreFilters("Chooses", node_names=frozenset({"n0", "n1"})),
        Rejects("Full", {"n0": unresolvable("never"), "n1": unschedulable("full")}),
        nodes=3,
    )
    for i in range(3):
        place(cluster, f"equal{i}", f"n{i}", priority=HIGH)
    await arrives(cluster)

    assert f"0/3 nodes are available: 1 {NO_VICTIMS}, 2 {NOT_HELPFUL}." == message_of(cluster)


async def test_6_2_3_where_pre_filter_says_unschedulable_every_node_is_looked_at():
    """The status of all nodes is then that one."""
    cluster = crowded_with(PreFilters("Refuses", unschedulable("no")), Rejects("Full", {"n0": "full"}))
    await arrives(cluster)

    assert f"0/1 nodes are available: 1 {NO_VICTIMS}." == message_of(cluster)


async def test_6_2_4_no_candidates_and_the_nomination_goes():
    """The node it was promised is taken by an equal."""
    cluster = crowded()
    place(cluster, "equal", priority=HIGH)
    await arrives(cluster, nominated_node_name="n0")

    assert f"0/1 nodes are available: 1 {NO_VICTIMS}." == message_of(cluster)
    assert ("", []) == (cluster.nomination("high"), list(cluster.queue.nominator.nodes_with_nominations()))


async def test_6_2_8_the_chosen_node_is_nominated():
    """In the queue at once, and in the pod's status; the message does not mention it."""
    cluster = crowded(2)
    place(cluster, "low")
    place(cluster, "middle", "n1", priority=MIDDLE)
    await arrives(cluster)

    assert ("n0", ["low"]) == (cluster.nomination("high"), evicted(cluster))
    assert ["n0"] == list(cluster.queue.nominator.nodes_with_nominations())
    assert "preemption" not in cluster.condition("high").message


async def test_6_3_1_policy_never():
    """No pod is evicted."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster, preemption_policy="Never")

    assert ("not eligible due to preemptionPolicy=Never.", []) == (message_of(cluster), evicted(cluster))


def leaves(cluster, name, reason):
    """The pod is on its way out, for that reason."""
    condition = PodCondition(type="DisruptionTarget", status="True", reason=reason)
    cluster.change_pod(name, status={"conditions": (condition,)})
    cluster.mark_deleted(name)


async def test_6_3_2_a_nominated_node_beyond_help_does_not_hold_the_pod_back():
    """Victims leave a node that was cordoned since: it preempts on another node."""
    cluster = crowded(2)
    place(cluster, "leaving")
    place(cluster, "low", "n1")
    leaves(cluster, "leaving", "PreemptionByScheduler")
    cluster.change_node("n0", spec={"unschedulable": True})
    await arrives(cluster, nominated_node_name="n0")

    assert ["low"] == evicted(cluster)


@reports(
    "nominated-node-lost",
    condition="`PodScheduled`, reason `Unschedulable`, of its next attempt; `nominatedNodeName` goes",
    event="`FailedScheduling` of the pod, if no other node is found",
)
async def test_6_3_2_a_nominated_node_that_is_deleted():
    """The pod is tried on what is left, and no longer nominated."""
    cluster = crowded(2)
    place(cluster, "leaving")
    place(cluster, "equal", "n1", priority=HIGH)
    leaves(cluster, "leaving", "PreemptionByScheduler")
    await arrives(cluster, nominated_node_name="n0")
    assert "n0" == cluster.nomination("high")
    cluster.remove_node("n0")
    cluster.remove(cluster.pod("leaving"))
    await cluster.tick(60)

    condition = cluster.condition("high")
    assert ("PodScheduled", "Unschedulable") == (condition.type, condition.reason)
    assert f"0/1 nodes are available: 1 {NO_VICTIMS}." == message_of(cluster)
    assert "" == cluster.nomination("high"), "nominatedNodeName"
    assert "FailedScheduling" in str(cluster.notes)


async def test_6_3_3_while_victims_of_a_preemption_leave_no_others_have_to():
    """The nomination stays."""
    cluster = crowded(2)
    place(cluster, "leaving")
    place(cluster, "low", "n1")
    leaves(cluster, "leaving", "PreemptionByScheduler")
    await arrives(cluster, nominated_node_name="n0")

    assert "not eligible due to a terminating pod on the nominated node." == message_of(cluster)
    assert ([], "n0") == (evicted(cluster), cluster.nomination("high"))


@pytest.mark.parametrize(
    ("priority", "reason"), [(LOW, "EvictionByEvictionAPI"), (HIGH, "PreemptionByScheduler")]
)
async def test_6_3_4_other_pods_that_leave_do_not_matter(priority, reason):
    """Those that leave for another reason, or that are no less important."""
    cluster = crowded(2)
    place(cluster, "leaving", priority=priority)
    place(cluster, "low", "n1", priority=LOW - 1)
    leaves(cluster, "leaving", reason)
    await arrives(cluster, nominated_node_name="n0")

    assert ["low"] == evicted(cluster)
