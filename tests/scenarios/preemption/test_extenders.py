"""What extenders have to say about victims (core 6.7, 6.2)."""

import pytest

from tests.scenarios.preemption.extends import Extends
from tests.scenarios.preemption.stage import LOW, MIDDLE, crowded, evicted, message_of, place


async def preempting(*extenders):
    """A pod that preempts on n0 or, better, on n1, if no extender objects."""
    cluster = crowded(2, extenders=extenders)
    place(cluster, "v0", priority=MIDDLE)
    place(cluster, "v1", "n1", priority=LOW)
    async with cluster.paused():
        cluster.add_pod("high", cpu="4", priority=100)
        await cluster.turn()
    return cluster


async def test_6_2_5_and_6_7_1_one_extender_after_another_if_it_cares():
    """Each is asked about what the one before left."""
    first, other, last = Extends("a", {"n0": (["v0"], 0)}), Extends("b", about="another"), Extends("c")
    last.preempts, silent = True, Extends("d")
    silent.preempts, silent.filters = False, False
    cluster = await preempting(first, other, last)

    assert [{"n0": ["v0"], "n1": ["v1"]}] == first.asked
    assert ([], [{"n0": ["v0"]}]) == (other.asked, last.asked)
    assert ["v0"] == evicted(cluster)


@pytest.mark.parametrize(
    ("ignorable", "victims", "message"), [(True, ["v1"], ""), (False, [], "refused")], ids=str
)
async def test_6_7_2_an_error_ends_the_attempt_unless_the_extender_is_ignorable(ignorable, victims, message):
    cluster = await preempting(Extends(answer=OSError("refused"), ignorable=ignorable))

    assert (victims, message) == (evicted(cluster), message_of(cluster))


@pytest.mark.parametrize(
    ("ignorable", "victims", "message"),
    [(True, ["v0"], ""), (False, [], 'expected at least one victim pod on node "n1"')],
    ids=str,
)
async def test_6_7_3_a_node_without_victims(ignorable, victims, message):
    """It is dropped where the extender is ignorable, an error otherwise."""
    answer = {"n0": (["v0"], 0), "n1": ([], 0)}
    cluster = await preempting(Extends(answer=answer, ignorable=ignorable))

    assert (victims, message) == (evicted(cluster), message_of(cluster))


async def test_6_2_6_and_6_7_4_an_empty_answer_ends_it():
    """No other extender is asked, no pod evicted, and there is no result."""
    never = Extends("b")
    cluster = await preempting(Extends("a", {}), never)

    assert "no candidate node for preemption" == message_of(cluster)
    assert ([], []) == (never.asked, evicted(cluster))


async def test_6_7_5_its_violation_counts_decide():
    """It knows of a budget that the scheduler does not."""
    cluster = await preempting(Extends(answer={"n0": (["v0"], 0), "n1": (["v1"], 1)}))

    assert ["v0"] == evicted(cluster)
