"""Placements of pod groups: what authors may answer, over a real socket."""

import numpy as np
import pytest

from berth_sdk import SKIP, Code, Normalization, Scores, Status, plugin
from berth_sdk.testing import Refused, make_node, make_pod, running

NODES = [make_node("a"), make_node("b"), make_node("c")]
PODS = [make_pod("p"), make_pod("q")]


def placing(answer):
    """A plugin that answers so for every group."""
    return plugin("groups", generate_placements=lambda _group, _pod, _nodes: answer)


def scoring(answer):
    """A plugin that scores so whatever is proposed."""
    return plugin("groups", score_placements=lambda _group, _pod, _nodes, _proposed: answer)


@pytest.mark.parametrize("of", [np.array, list])
async def test_placements(of):
    """A group may go to the nodes of each set, of those asked about, in the author's order."""
    sets = {"ends": of([True, False, True]), "1": of([False, True, False])}
    async with running(placing(sets), *NODES) as host:
        every = await host.generate_placements("g", *PODS)
        some = await host.generate_placements("g", *PODS, candidates=["c"])

    assert [("ends", ["a", "c"]), ("1", ["b"])] == list(every.items())
    assert {"ends": ["c"]} == some


async def test_no_opinion():
    """SKIP leaves the group to all nodes."""
    async with running(placing(SKIP), *NODES) as host:
        assert await host.generate_placements("g", *PODS) is None


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        pytest.param("no zone is large enough", Code.UNSCHEDULABLE, "no zone is large enough", id="nowhere"),
        pytest.param(
            {"x": [True]},
            Code.ERROR,
            "groups: placement 'x': expected a name and 3 of bool",
            id="a set for fewer nodes",
        ),
        pytest.param(
            {"": [True] * 3}, Code.ERROR, "groups: placement '': expected a name and 3 of bool", id="no name"
        ),
        pytest.param(
            {"x": [1, 1, 1]},
            Code.ERROR,
            "groups: placement 'x': expected a name and 3 of bool",
            id="numbers",
        ),
        pytest.param(
            7, Code.ERROR, "groups: expected None, a text, a Reason or a Status, got 7", id="no answer"
        ),
    ],
)
async def test_refused(answer, code, text):
    """What is no placement fails the attempt, or turns the group down, with a text that says so."""
    async with running(placing(answer), *NODES) as host:
        with pytest.raises(Refused) as refusal:
            await host.generate_placements("g", *PODS)

    assert Status(code, (text,)) == refusal.value.status


async def test_scores():
    """Placements are scored by where their pods go."""
    asked = []

    def score(group, pod, nodes, proposed):
        asked.extend((group.name, pod.name))
        for each in proposed:
            asked.extend(f"{key.name} on {nodes[row].name}" for key, row in each.assignments)
        return Scores(np.array([-int(each.nodes.sum()) for each in proposed]), Normalization.MIN_MAX)

    async with running(plugin("groups", score_placements=score), *NODES) as host:
        scores = await host.score_placements("g", PODS, {"p": "a", "q": "c"}, {"q": "b"})

    assert [-2, -1] == scores
    assert ["g", "p", "p on a", "q on c", "q on b"] == asked


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param([1, 2], "groups: expected 1 integers, got int64 (2,)", id="a wrong length"),
        pytest.param(
            [101],
            "groups: scores from 0 to 101 without normalization: 0 to 100 is the range",
            id="out of range",
        ),
        pytest.param(
            Scores(np.array([-1]), Normalization.MAX),
            "groups: scores from -1: they must not be negative to be divided by the highest",
            id="negative",
        ),
    ],
)
async def test_refused_scores(answer, text):
    """Scores of placements are checked as those of nodes."""
    async with running(scoring(answer), *NODES) as host:
        with pytest.raises(Refused) as refusal:
            await host.score_placements("g", PODS, {"p": "a"})

    assert Status(Code.ERROR, (text,)) == refusal.value.status


async def test_no_scores():
    """None is no opinion."""
    async with running(scoring(None), *NODES) as host:
        assert await host.score_placements("g", PODS, {"p": "a"}) is None
