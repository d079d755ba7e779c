"""Groups, nodes, profiles and the queue."""

import pytest

from berth.explain.overviews import UnknownError
from berth.objects.pods.pod import Pod
from berth.objects.taint import Toleration
from berth.scheduler.pages.explaining import new_overviews
from tests.explain.asking import Asked
from tests.explain.pending_pods import GANGS, GPU, MEMBER, gang
from tests.scenarios.kit.cluster import PROFILE


def views(cluster):
    return new_overviews(cluster.core, cluster.explainer, lambda: cluster.api.all(Pod))


async def test_a_gang_that_does_not_fit_says_what_its_pods_lack():
    """Pods that are written alike are one line."""
    cluster = Asked(gates=GANGS)
    cluster.add_node("n0", cpu="2")
    cluster.add(gang(3))
    for i in range(3):
        cluster.add_pod(f"p{i}", cpu="1", **MEMBER)
    await cluster.tick(1)

    found = await views(cluster).pod_group("default", "g")

    assert (3, 3, 0, 2) == (found.min_count, found.pods, found.scheduled, found.fit_together)
    assert (
        "Of 3 pods without a node 2 would fit together now (3 are needed at once). "
        "The others: Insufficient cpu (NodeResourcesFit)."
    ) == found.cause
    assert [(1, "Add a node like n0 (2 cpu, 16Gi memory, 110 pods).")] == [
        (alike.count, alike.remedy) for alike in found.classes
    ]


async def test_a_pod_of_a_gang_that_would_fit_alone():
    """It is not said that it fits: its group as a whole did not."""
    cluster = Asked(gates=GANGS)
    cluster.add_node("n0", cpu="2")
    cluster.add(gang(3))
    for i in range(3):
        cluster.add_pod(f"p{i}", cpu="1", **MEMBER)
    await cluster.tick(1)

    found = await cluster.explain("p0")

    assert found.cause.startswith("The pod by itself fits on 1 of 1 nodes; its group g as a whole did not: ")
    assert "See what the group lacks: berth explain podgroup g." == found.remedy


async def test_a_gang_with_too_few_pods():
    cluster = Asked(gates=GANGS)
    cluster.add_node("n0")
    cluster.add(gang(3))
    cluster.add_pod("p", **MEMBER)
    await cluster.run()

    found = await views(cluster).pod_group("default", "g")

    assert "The gang needs 3 pods and has 1: 2 more have to be created." == found.cause
    assert {"NotQueued": 1} == found.states


async def test_a_group_without_an_object():
    cluster = Asked(gates=GANGS)
    cluster.add_pod("p", **MEMBER)
    await cluster.run()

    found = await views(cluster).pod_group("default", "g")

    assert "Pods name the group (1), and there is no PodGroup of that name: create it." == found.cause
    with pytest.raises(UnknownError, match="GenericWorkload"):
        await views(cluster).pod_group("default", "h")


async def test_a_node_and_the_pods_that_it_would_take():
    """Those that fit come first; the others say all that keeps them off this node."""
    cluster = Asked()
    cluster.add_node("n0", taints=[GPU], cpu="2")
    cluster.add_pod("o", node_name="n0", cpu="1")
    async with cluster.paused():
        for i in range(2):
            cluster.add_pod(f"big{i}", cpu="4")
        cluster.add_pod("tolerates", tolerations=(Toleration("gpu", "Exists"),), cpu="1")
        found = await views(cluster).node("n0", {PROFILE})

    cpu = next(amount for amount in found.amounts if amount.resource == "cpu")
    assert (2000, 1000, 1000) == (cpu.allocatable, cpu.requested, cpu.free)
    assert "1 of 3 waiting pods would fit on the node now, one at a time." == found.cause
    assert [(True, 1, []), (False, 2, ["TaintToleration", "NodeResourcesFit"])] == [
        (alike.fits, alike.count, [each.plugin for each in alike.refusals]) for alike in found.classes
    ]
    with pytest.raises(UnknownError, match="no node n1 is known"):
        await views(cluster).node("n1", {PROFILE})


async def test_what_a_profile_s_pods_met():
    """By their last attempts: results, rejecting plugins and messages, the most frequent first."""
    cluster = Asked()
    cluster.add_node("n0", cpu="2")
    cluster.add_pod("fits", cpu="1")
    for i in range(3):
        cluster.add_pod(f"big{i}", cpu="8")
    cluster.add_pod("selective", node_selector={"disk": "ssd"})
    await cluster.run()

    found = await views(cluster).profile("default-scheduler")

    assert {"scheduled": 1, "unschedulable": 4} == found.results
    assert [("NodeResourcesFit", 3), ("NodeAffinity", 1)] == [(c.what, c.pods) for c in found.rejected_by]
    assert found.messages[0].what.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert "NodeResourcesFit" in found.plugins["filter"]
    with pytest.raises(UnknownError, match="no profile x; there are: default-scheduler"):
        await views(cluster).profile("x")


async def test_the_queue():
    """The active ones in order, the others by what they wait for."""
    cluster = Asked()
    cluster.add_node("n0", taints=[GPU])
    for i in range(2):
        cluster.add_pod(f"rejected{i}")
    cluster.add_pod("gated", gates=["g"])
    await cluster.run()
    async with cluster.paused():
        cluster.add_pod("low")
        cluster.add_pod("high", priority=5)
        found = await views(cluster).queued(PROFILE, {PROFILE})

    assert ["default/high", "default/low"] == [each.pod for each in found.active]
    assert [("TaintToleration", 2)] == [(c.what, c.pods) for c in found.unschedulable]
    assert [("SchedulingGates", 1)] == [(c.what, c.pods) for c in found.gated]
    places = ("active", "backoff", "unschedulable", "gated")
    assert [2, 0, 2, 1] == [found.counts[place] for place in places]


async def test_pods_of_profiles_that_another_replica_schedules():
    """They wait here, too, and are that replica's to count."""
    cluster = Asked(profiles={PROFILE: None, "batch": None})
    cluster.add_node("n0", taints=[GPU])
    async with cluster.paused():
        cluster.add_pod("ours")
        cluster.add_pod("theirs", scheduler_name="batch")
        queue, both = (
            await views(cluster).queued(PROFILE, ()),
            await views(cluster).queued("batch", {PROFILE}),
        )
        node = await views(cluster).node("n0", {PROFILE})

    assert ([PROFILE], 1, ["default/ours"]) == (
        queue.profiles,
        queue.counts["active"],
        [each.pod for each in queue.active],
    )
    assert (["batch", PROFILE], 2) == (both.profiles, both.counts["active"])
    assert ("0 of 1 waiting pods would fit on the node now, one at a time.", 1) == (node.cause, node.waiting)
    with pytest.raises(UnknownError, match="no profile x; there are: default-scheduler, batch"):
        await views(cluster).queued("x", ())


@pytest.mark.parametrize("profile", [PROFILE, "another"])
async def test_the_profile_of_a_group_is_its_pods(profile):
    """Another scheduler's pods are known by the watch."""
    cluster = Asked(gates=GANGS)
    cluster.add(gang(3))
    before = await views(cluster).profile_of_group("default", "g")
    cluster.add_pod("p", scheduler_name=profile, **MEMBER)
    await cluster.run()

    assert ("", profile) == (before, await views(cluster).profile_of_group("default", "g"))


async def test_what_a_gated_group_waits_for():
    """From 1.37 on it is gated as a whole: each pod says for what, also where another pod is held back."""
    cluster = Asked(gates={"GenericWorkload": True}, release=(1, 37))
    cluster.add_node("n0")
    cluster.add_pod("a", **MEMBER)
    cluster.add_pod("b", gates=["example.com/wait"], **MEMBER)
    await cluster.run()
    without = (await cluster.explain("a")).cause
    cluster.add(gang(3))
    await cluster.run()
    few = (await cluster.explain("a")).cause
    cluster.add_pod("c", **MEMBER)
    await cluster.run()
    held = (await cluster.explain("a")).cause
    counts = (await views(cluster).queued(PROFILE, [])).counts

    assert "The pod is not queued yet: waiting for pod group default/g to be created." == without
    assert "waiting for minCount pods from a gang to appear in scheduling queue" in few
    assert "SchedulingGates keeps the pod out of the queue: pod default/b of its group" in held
    assert (3, 0) == (counts["gated"], counts["unschedulable"])
