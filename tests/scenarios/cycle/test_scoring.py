"""From the nodes that fit to the one that is taken (core 4.10, 4.11)."""

from collections import Counter

import pytest

from berth.framework.status import SKIP, failed, unschedulable
from tests.fakes import Normalizes, PreScores, Rejects, Scores
from tests.scenarios.kit.cluster import Cluster
from tests.unit.evaluation.points.test_extending import Extends

OUT_OF_RANGE = (
    'applying score defaultWeights on Score plugins: plugin "S" returns an invalid score 101, '
    "it should in the range of [0, 100] after normalizing"
)


async def tried(*plugins, nodes=3, **options):
    """One pod's attempt on some nodes."""
    cluster = Cluster(*plugins, **options)
    for number in range(nodes):
        cluster.add_node(f"n{number}")
    cluster.add_pod()
    await cluster.run()
    return cluster


async def test_4_10_1_without_scores_any_feasible_node_will_do():
    """No extender, no Score plugin."""
    cluster = await tried(Rejects("A", ["n0"]))

    assert cluster.bound["p0"] in {"n1", "n2"}


async def test_4_10_2_a_prescore_that_skips_leaves_its_score_out():
    """The others count."""
    skips = PreScores("Skips", SKIP, {"n0": 100})
    cluster = await tried(skips, Scores("S", {"n1": 1}))

    assert ({"p0": "n1"}, []) == (cluster.bound, skips.calls)


@pytest.mark.parametrize("status", [failed("broken"), unschedulable("broken")])
async def test_4_10_3_any_other_prescore_breaks_the_cycle(status):
    """A rejection, too."""
    cluster = await tried(PreScores("P", status))

    assert 'running PreScore plugin "P": broken' == cluster.condition().message
    assert ("SchedulerError", "error backoff") == (cluster.condition().reason, cluster.where())


async def test_4_10_4_a_score_that_breaks_breaks_the_cycle():
    """With the plugin's name."""
    cluster = await tried(Scores("S", RuntimeError("broken")))

    assert 'running Score plugins: plugin "S" failed with: broken' == cluster.condition().message


async def test_4_10_5_normalising_sees_the_feasible_nodes_alone():
    """What it breaks, breaks the cycle."""
    normalizes = Normalizes("N", {"n0": 100, "n1": 3, "n2": 5})
    await tried(Rejects("A", ["n0"]), normalizes)
    broken = await tried(Normalizes("N", add=RuntimeError("broken")))

    assert [3, 5] == normalizes.seen
    assert 'running Normalize on Score plugins: plugin "N" failed with: broken' == broken.condition().message


async def test_4_10_6_and_11_6_10_a_score_out_of_range_breaks_the_cycle():
    """Plugins that are not ours are not trusted with it."""
    cluster = await tried(Scores("S", {"n0": 101}, in_process=False))

    assert OUT_OF_RANGE == cluster.condition().message
    assert "SchedulerError" == cluster.condition().reason


async def test_4_10_7_scores_are_summed_by_weight():
    """Three times two beats five."""
    cluster = await tried((Scores("S", {"n0": 2}), 3), (Scores("T", {"n1": 5}), 1))

    assert ({"p0": "n0"}, 6) == (cluster.bound, cluster.records[0].score)


async def test_4_10_8_extenders_scores_are_scaled_and_weighted():
    """Ten of theirs is a hundred of ours; one that fails adds nothing."""
    cares = Extends("cares", weight=2, prioritize={"n2": 3})
    fails = Extends("fails", weight=9, prioritize=RuntimeError("away"))
    other = Extends("other", weight=9, about="other pods", prioritize={"n0": 10})
    cluster = await tried(Scores("S", {"n1": 59}), extenders=[cares, fails, other])

    assert ({"p0": "n2"}, 60) == (cluster.bound, cluster.records[0].score)


async def test_4_11_1_the_highest_total_wins():
    """Over all plugins together."""
    cluster = await tried(Scores("S", {"n0": 50, "n1": 40}), Scores("T", {"n1": 20}))

    assert {"p0": "n1"} == cluster.bound


async def test_4_11_2_and_10_10_among_the_best_each_has_the_same_chance():
    """No node is preferred, with extenders or without."""
    for extenders in ((), [Extends(prioritize={"n0": 5, "n2": 5})]):
        scores = {"n0": 5, "n2": 5, "n1": 1}
        cluster = Cluster(Scores("S", scores), extenders=extenders)
        for number in range(3):
            cluster.add_node(f"n{number}")
        for number in range(200):
            cluster.add_pod(f"p{number}")
        await cluster.run()
        taken = Counter(cluster.bound.values())

        assert {"n0", "n2"} == set(taken)
        assert min(taken.values()) > 70


async def test_4_11_3_the_same_seed_takes_the_same_nodes():
    """Chance comes from a source that is handed in."""
    runs = []
    for _ in range(2):
        cluster = Cluster(Scores("S"), seed=7)
        for number in range(10):
            cluster.add_node(f"n{number}")
            cluster.add_pod(f"p{number}")
        await cluster.run()
        runs.append(cluster.bound)

    assert runs[0] == runs[1]
    assert 1 < len(set(runs[0].values()))
