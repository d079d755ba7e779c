"""One more node, where there is one already that was added by a proposal."""

from berth.explain import proposals
from berth.explain.proposals import MAX_CLAIM_TRIALS
from berth.testing.storage import claim_volume, make_claim, make_class, make_volume
from tests.explain.asking import Asked
from tests.explain.pending_pods import FULL, ZONE, ZONE_A, on


async def test_a_second_new_node():
    """The proposal names another one: the pod that took the first is still there."""
    cluster = Asked()
    on({}, placed=[FULL, {**FULL, "node_name": "new-node"}], cpu="4", preemption_policy="Never")(cluster)
    cluster.add_node("new-node")
    await cluster.run()

    found = (await cluster.explain()).proposals
    (new,) = [proposal for proposal in found if proposal.kind == "NewNode"]
    cluster.apply(new)
    await cluster.tick(20)

    assert ["new-node-2"] == new.nodes
    assert "new-node-2" == cluster.bound["p"]


async def test_many_classes_leave_trials_for_nodes(monkeypatch):
    """However many a cluster has, a node for the pod's volume is still looked for."""
    monkeypatch.setattr(proposals, "MAX_TRIALS", MAX_CLAIM_TRIALS + 2)
    cluster = Asked()
    far = make_volume("v", near={ZONE: ["b"]})
    never = [make_class(f"k{i}") for i in range(30)]
    on(ZONE_A, others=[make_class(), *never, make_claim("c"), far], volumes=(claim_volume("c"),))(cluster)
    await cluster.run()

    assert ["NewNode"] == [proposal.kind for proposal in (await cluster.explain()).proposals]
