"""PreScore, Score and NormalizeScore over the feasible nodes."""

import asyncio

import numpy as np
import pytest

from berth.evaluation.find_nodes import Feasible
from berth.evaluation.points.scoring import run_pre_scores
from berth.evaluation.select_host import score_nodes
from berth.framework.status import SKIP, SUCCESS, PluginError, failed, unschedulable
from berth.testing.builders import make_node
from berth.testing.clusters import table
from tests.fakes import Normalizes, PreScores, Scores, attempt_at, empty, framework

NODES = table([make_node(f"n{i}") for i in range(1, 4)])
ALL = np.array([True, True, True])
BUT_N2 = np.array([True, False, True])


async def scored(*plugins, feasible=ALL, skip=()):
    weighed = [p if isinstance(p, tuple) else (p, 1) for p in plugins]
    profile = framework(pre_score=[PreScores(name, SKIP) for name in skip], score=weighed)
    found = Feasible(feasible, np.count_nonzero(feasible), feasible.size, None, matches_cache=True)
    return await score_nodes(attempt_at(NODES), empty(profile, detailed=True), found)


async def test_totals_are_weighted_sums():
    found = await scored((Scores("A", {"n1": 10, "n2": 20}), 3), Scores("B", {"n2": 1, "n3": 2}))

    assert [30, 61, 2] == found.totals.tolist()
    assert [("A", 3, [10, 20, 0]), ("B", 1, [0, 1, 2])] == [
        (p.plugin, p.weight, p.final.tolist()) for p in found.parts
    ]


async def test_only_feasible_nodes_are_normalised_and_counted():
    plugin = Normalizes("A", {"n1": 1, "n2": 99, "n3": 3}, add=10)
    found = await scored(plugin, feasible=BUT_N2)

    assert [1, 3] == plugin.seen
    assert [0, 2] == found.rows.tolist()
    assert [11, 13] == found.totals.tolist()


async def test_skipped_plugins_add_nothing():
    skipped = Scores("A", {"n1": 50})
    found = await scored(skipped, Scores("B"), skip={"A"})

    assert [0, 0, 0] == found.totals.tolist()
    assert ["B"] == [part.plugin for part in found.parts]
    assert [] == skipped.calls


@pytest.mark.parametrize("score", [101, -1])
async def test_a_score_out_of_range_is_an_error(score):
    with pytest.raises(PluginError) as caught:
        await scored(Scores("A", {"n2": score}, in_process=False))

    assert (
        f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing"
    ) == str(caught.value)


async def test_what_is_not_feasible_may_be_out_of_range():
    found = await scored(Scores("A", {"n2": 101}, in_process=False), feasible=BUT_N2)

    assert [0, 0] == found.totals.tolist()


async def test_normalising_brings_a_score_into_range():
    found = await scored(Normalizes("A", {"n1": 150}, add=-100, in_process=False), feasible=ALL & [1, 0, 0])

    assert [50] == found.totals.tolist()


@pytest.mark.parametrize("in_process", [True, False])
async def test_a_score_that_fails_is_an_error(in_process):
    with pytest.raises(PluginError, match='running Score plugins: plugin "A" failed with: boom'):
        await scored(Scores("A", ValueError("boom"), in_process=in_process))


async def test_a_normalisation_that_fails_is_an_error():
    plugin = Normalizes("A", {"n1": 1}, add=ValueError("boom"))
    with pytest.raises(PluginError, match='running Normalize on Score plugins: plugin "A" failed with: boom'):
        await scored(plugin)


class Remote(Scores):
    in_process = False

    def __init__(self, name, by_node=()):
        super().__init__(name, by_node, in_process=False)

    def score(self, state, pod, nodes):
        self.answer = asyncio.get_running_loop().create_future()
        if self.by_node:
            self.answer.set_result(super().score(state, pod, nodes))
        return self.answer


async def test_remote_scores_are_awaited():
    assert [5, 0, 1] == (await scored(Scores("A", {"n3": 1}), Remote("R", {"n1": 5}))).totals.tolist()


async def test_a_remote_score_that_is_not_needed_is_not_awaited():
    remote = Remote("R")
    with pytest.raises(PluginError):
        await scored(Scores("A", ValueError("boom")), remote)

    assert remote.answer.cancelled()


async def test_pre_score_sees_who_is_feasible_and_may_skip():
    sees, skips = PreScores("A", SUCCESS), PreScores("B", SKIP)
    attempt = attempt_at(NODES)
    await run_pre_scores([sees, skips], attempt, BUT_N2)

    assert [True, False, True] == sees.feasible
    assert frozenset({"B"}) == attempt.state.skip_score


@pytest.mark.parametrize(
    "answer",
    [failed("boom"), unschedulable("boom"), ValueError("boom")],
    ids=["error", "rejection", "raises"],
)
async def test_any_other_pre_score_answer_is_an_error(answer):
    with pytest.raises(PluginError, match='running PreScore plugin "A": boom'):
        await run_pre_scores([PreScores("A", answer)], attempt_at(NODES), ALL)
