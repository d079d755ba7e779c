"""Vectors that answer for all nodes, and a harness that asks about them as the scheduler does."""

import numpy as np
import pytest

from berth_sdk import Plugin, Reason
from berth_sdk.testing import make_node, make_pod, running
from berth_sdk.testing.host import Refused

NODES = tuple(make_node(name) for name in "abc")
POD = make_pod("p")
SECOND = Reason("the second")


class Builds(Plugin):
    """Turns down the second node, and scores by index."""

    name = "builds"

    def filter_nodes(self, _pod, nodes):
        return nodes.verdicts(lambda index, _: SECOND if index == 1 else None)

    def score_nodes(self, _pod, nodes):
        return nodes.scores(lambda index, _: 10 * index)


@pytest.mark.parametrize("listed", [False, True])
async def test_builders(listed):
    """They make vectors with an entry for each node, whichever nodes are asked about."""
    async with running(Builds(), *NODES) as host:
        rejections, scores = await host.filter_score(POD, ["b", "c"], listed=listed)

    assert {"b": SECOND} == rejections.nodes
    assert {"c": 20} == scores


class Appends(Plugin):
    """Has an entry for each node that is asked about, and for no other."""

    name = "appends"

    def score_nodes(self, _pod, nodes):
        return np.array([1 for _ in nodes.asked()])


async def test_entries_of_the_asked_nodes_alone():
    """A test ends there: the harness asks about nodes one by one too."""
    async with running(Appends(), *NODES) as host:
        with pytest.raises(Refused, match="expected 3 integers, got int64 \\(1,\\)"):
            await host.score(POD)


class Counts(Plugin):
    """Scores by the number of questions."""

    name = "counts"
    asked = 0

    def score(self, _pod, _node):
        self.asked += 1
        return self.asked


async def test_another_score_alone():
    """A test ends where a node has another answer alone than among all."""
    async with running(Counts(), *NODES) as host:
        with pytest.raises(AssertionError, match="a asked about alone: 4, and together with the others: 1"):
            await host.score(POD)
