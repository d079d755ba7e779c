"""The true cause stands first for every pending pod of the table, and what is proposed makes it fit."""

import pytest

from tests.explain.asking import Asked
from tests.explain.pending_pods import CASES, DEFAULT
from tests.failures.reporting import reports


async def cluster_of(case):
    """The cluster with its pod, after the scheduler had its say."""
    plugins = case.plugins()
    cluster = Asked(*((*DEFAULT, *plugins) if plugins else ()), **case.options)
    case.build(cluster)
    await cluster.run()
    return cluster


@reports(
    "pod-pending",
    answer="`berth explain pod`: the cause first, of gates, groups, volumes, devices, any plugin",
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_the_true_cause_stands_first(case):
    cluster = await cluster_of(case)

    found = await cluster.explain()

    assert (case.state, True) == (found.state.kind, case.says in found.cause), found.cause
    if case.by:
        first = found.nodes.refusals or found.nodes.groups[0].refusals
        assert case.by == first[0].plugin
    assert list(case.helps) == [proposal.kind for proposal in found.proposals]


@pytest.mark.parametrize("case", [case for case in CASES if case.helps], ids=lambda case: case.id)
async def test_each_proposal_makes_the_pod_fit(case):
    """It is done to the cluster, each to one of its own, and the scheduler binds the pod.

    A pod with a volume that is still to be bound or made waits for it on its node.
    """
    proposals = (await (await cluster_of(case)).explain()).proposals
    for proposal in proposals:
        cluster = await cluster_of(case)
        cluster.apply(proposal)
        await cluster.tick(400)

        placed = cluster.bound.get("p") or (await cluster.explain()).state.node
        assert placed in ({*proposal.nodes} if proposal.node_count <= 5 else cluster.bound.values()), proposal
