"""What past attempts say of the nodes that they looked at."""

import pytest

from berth.aggregated_api.text_pages import page
from berth.framework.status import failed, unschedulable
from tests.explain.asking import Asked, Refuses, as_json
from tests.explain.pending_pods import DEFAULT, GPU
from tests.fakes import PreFilters


async def last_attempt(cluster):
    """The pod's last attempt, and its line of the page."""
    cluster.add_pod("p")
    await cluster.run()
    answer = as_json(await cluster.explain())
    return answer["attempts"][-1], list(page(answer, wide=True))[-1]


def nodes(cluster, *names, **keywords):
    for name in names:
        cluster.add_node(name, **keywords)


async def test_nodes_that_all_turned_the_pod_down_were_evaluated():
    cluster = Asked()
    nodes(cluster, "n0", "n1", "n2", taints=[GPU])

    attempt, line = await last_attempt(cluster)

    assert (0, 3, "") == (attempt["feasibleNodes"], attempt["evaluatedNodes"], attempt["notEvaluated"])
    assert ", 0 of 3 nodes fitted, " in line


async def test_nodes_that_an_extender_turned_down_were_evaluated():
    cluster = Asked(extenders=[Refuses()])
    nodes(cluster, "n0", "n1")

    _, line = await last_attempt(cluster)

    assert ", 0 of 2 nodes fitted, " in line


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        ([PreFilters("Quota", unschedulable("no"))], "PreFilter of Quota refused"),
        ([PreFilters("Quota", failed("boom"))], "Quota failed"),
        ([PreFilters("A", node_names=["gone"])], "PreFilter of A left no node"),
        (
            [PreFilters("A", node_names=["n0"]), PreFilters("B", node_names=["n1"])],
            "PreFilter of A, B left no node",
        ),
    ],
    ids=["refused", "failed", "no such node", "nothing left"],
)
async def test_an_attempt_that_came_to_no_node_says_what_ended_it(plugins, why):
    """What PreFilter had to say left no node for Filter plugins."""
    cluster = Asked(*DEFAULT, *plugins)
    nodes(cluster, "n0", "n1")

    attempt, line = await last_attempt(cluster)

    assert (0, why) == (attempt["evaluatedNodes"], attempt["notEvaluated"])
    assert f", no node was evaluated: {why}, " in line


async def test_an_attempt_without_nodes_says_that_there_are_none():
    _, line = await last_attempt(Asked())

    assert ", no node was evaluated: there are no nodes, " in line
