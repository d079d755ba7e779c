"""The states of a pod, beyond those of the table; and the bounds of an explanation."""

import numpy as np
import pytest

from berth.explain import proposals
from berth.explain.explainer import ExplainOptions, UnknownPodError
from berth.explain.node_edits import Exchanged
from berth.framework.status import Code, Status
from berth.objects.taint import Taint
from tests.explain.asking import Asked
from tests.explain.pending_pods import DEFAULT, GPU, WEB, spread
from tests.fakes import Permits


async def settled(cluster):
    await cluster.run()
    return await cluster.explain()


async def test_bound():
    """With the other nodes it could be on, its own among them."""
    cluster = Asked()
    cluster.add_node("n0")
    cluster.add_node("n1")
    cluster.add_pod("p")

    found = await settled(cluster)

    node = cluster.bound["p"]
    assert ("Bound", f"The pod is on node {node}.", node) == (found.state.kind, found.cause, found.state.node)
    assert {"n0", "n1"} == {each.name for each in found.nodes.scored}
    assert [node] == [each.name for each in found.nodes.scored if each.own]
    assert ["scheduled"] == [attempt.result for attempt in found.attempts]


async def test_active_with_its_position():
    """Two pods of more priority come first, whenever they came."""
    cluster = Asked()
    cluster.add_node("n0")
    await cluster.run()
    async with cluster.paused():
        cluster.add_pod("p")
        cluster.add_pod("first", priority=2)
        cluster.add_pod("second", priority=1)
        found = await cluster.explain()

    assert ("Active", 3) == (found.state.kind, found.state.position)
    assert "The pod fits on 1 of 1 nodes and is number 3 in the queue." == found.cause


async def test_unschedulable_with_the_events_that_bring_it_back():
    cluster = Asked()
    cluster.add_node("n0", taints=[GPU])
    cluster.add_pod("p")

    found = await settled(cluster)

    awaited = {(each.resource, *each.actions) for each in found.state.awaited}
    assert (["TaintToleration"], True) == (
        found.state.rejected_by,
        ("Node", "Add", "UpdateNodeTaint") in awaited,
    ), awaited


async def test_backing_off_although_it_fits_by_now():
    """A node that came meanwhile brought it back; it is tried once its backoff is over."""
    cluster = Asked()
    cluster.add_node("n0", taints=[GPU])
    cluster.add_pod("p")
    await cluster.run()
    async with cluster.paused():
        cluster.add_node("n1")
        found = await cluster.explain()

    assert "BackingOff" == found.state.kind
    assert found.state.until > found.state.since
    assert found.cause.startswith("The pod fits on 1 of 2 nodes now and backs off until ")
    assert [] == found.proposals


async def test_nominated_while_victims_leave():
    """The cause is whom the pod waits for, and not that it does not fit yet."""
    cluster = Asked()
    cluster.add_node("n0", cpu="4")
    cluster.add_pod("victim", cpu="4", node_name="n0")
    cluster.add_pod("p", cpu="4", priority=10)

    found = await settled(cluster)

    assert ("n0", ["default/victim"]) == (found.state.nomination.node, found.state.nomination.leaving)
    assert "Node n0 is being made free: default/victim are being deleted." == found.cause


async def test_deleting():
    cluster = Asked()
    cluster.add_node("n0", taints=[GPU])
    cluster.add_pod("p")
    await cluster.run()
    cluster.mark_deleted("p")

    found = await settled(cluster)

    assert ("Deleting", "The pod is being deleted, so it is not scheduled.") == (
        found.state.kind,
        found.cause,
    )


async def test_gone_and_never_there():
    cluster = Asked()
    cluster.add_node("n0", taints=[GPU])
    cluster.add_pod("p")
    await cluster.run()
    cluster.delete_pod("p")

    found = await settled(cluster)

    assert ("Gone", ["unschedulable"]) == (found.state.kind, [each.result for each in found.attempts])
    with pytest.raises(UnknownPodError, match="no pod default/q is known"):
        await cluster.explain("q")


async def test_a_pod_of_another_scheduler_names_the_profiles_there_are():
    cluster = Asked()
    cluster.add_pod("p", scheduler_name="other")

    found = await settled(cluster)

    assert ("NotOurs", ["default-scheduler"], None) == (found.state.kind, found.state.profiles, found.nodes)
    assert "Make it with spec.schedulerName one of: default-scheduler" in found.remedy


async def test_until_when_each_plugin_waits_at_permit():
    """Each has its own words and its own time."""
    gang = Permits("Gang", Status(Code.WAIT, ("two more",)), 30.0)
    cluster = Asked(*DEFAULT, gang, Permits("Quota", Status(Code.WAIT), 60.0))
    cluster.add_node("n0")
    cluster.add_pod("p")

    found = await settled(cluster)

    waits = {wait.plugin: (wait.message, wait.until) for wait in found.state.waits_for}
    assert ("two more", "") == (waits["Gang"][0], waits["Quota"][0])
    assert waits["Gang"][1] == found.state.until < waits["Quota"][1]
    assert ["WaitingAtPermit"] == [reason for reason, _, _ in cluster.notes]


async def test_explaining_changes_nothing():
    """Not the queue, not the cache, not its events, and the pod is tried no more often."""
    cluster = Asked()
    cluster.add_node("n0", cpu="4")
    cluster.add_pod("o", node_name="n0", cpu="3")
    cluster.add_pod("p", cpu="4")
    await cluster.run()
    before = (
        cluster.queue.sizes(),
        cluster.cache.pod_count(),
        cluster.notes,
        cluster.tried,
        len(cluster.api.calls),
    )

    found = await cluster.explain(wanted=ExplainOptions(all_reasons=True))
    await cluster.run()

    assert found.proposals
    assert before == (
        cluster.queue.sizes(),
        cluster.cache.pod_count(),
        cluster.notes,
        cluster.tried,
        len(cluster.api.calls),
    )


async def test_trials_are_bounded(monkeypatch):
    """What was found until then is shown, and that not everything was tried."""
    monkeypatch.setattr(proposals, "MAX_TRIALS", 3)
    cluster = Asked()
    for i in range(10):
        cluster.add_node(f"n{i}", taints=[Taint(f"team-{i}", "", "NoSchedule")], cpu="1")
    cluster.add_pod("p", cpu="2")

    found = await settled(cluster)

    assert "stopped after 3 trials" == found.proposals_cut_short
    assert ["Several"] == [proposal.kind for proposal in found.proposals]


async def test_a_changed_node_is_put_back():
    """Counts of pods are what they were, those over all nodes included."""
    cluster = Asked()
    cluster.add_node("n0", labels={"zone": "a"}, cpu="4")
    cluster.add_pod("o", node_name="n0", cpu="3", labels=WEB)
    cluster.add_pod("p", labels=WEB, topology_spread_constraints=(spread("zone"),))
    await cluster.run()
    nodes = cluster.cache.fresh_snapshot()
    before = nodes.requested.tolist(), nodes.pod_count.tolist(), list(nodes.names)
    (victim,) = [uid for uid in nodes.pods[0] if uid.endswith("-o")]

    with Exchanged(nodes, nodes.nodes[0], [victim]):
        assert before[1][0] - 1 == nodes.pod_count[0]
    new = type(nodes.nodes[0])(metadata=nodes.nodes[0].metadata.__class__(name="new"))
    with Exchanged(nodes, new):
        assert ["n0", "new"] == nodes.names

    assert before == (nodes.requested.tolist(), nodes.pod_count.tolist(), list(nodes.names))
    assert np.array_equal(nodes.requested, cluster.cache.fresh_snapshot().requested)
