"""One more node, where there is one already that was added by a proposal."""

from tests.explain.asking import Asked
from tests.explain.pending_pods import FULL, on


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
