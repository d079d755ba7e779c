"""What extenders have to say about victims (core 6.7, 6.2)."""

import pytest

from berth.config.releases.release import RELEASES
from berth.framework.extender import ExtenderVerdicts
from tests.scenarios.preemption.extends import Extends
from tests.scenarios.preemption.stage import HIGH, LOW, MIDDLE, crowded, evicted, message_of, place

IN_36, IN_37, IN_38 = RELEASES
NEEDS_A_VICTIM = 'expected at least one victim pod on node "n0"'
NO_VICTIMS = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
NO_CANDIDATE = "no candidate node for preemption"


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


class Licences(Extends):
    """Has none left for `high` until a pod that holds one is gone, and says which pods hold one."""

    filters = True

    async def filter(self, _attempt, nodes):
        return ExtenderVerdicts((), {node.name: "no licence is free" for node in nodes}, {})


class TurnsDown(Licences):
    """The same, and has no say in preemption."""

    preempts = False


async def without_a_licence(release, *extenders):
    """A pod for which there is room on n0 beside `v0`, but no licence."""
    cluster = crowded(extenders=extenders, release=release)
    place(cluster, "v0", cpu="1")
    async with cluster.paused():
        cluster.add_pod("high", cpu="1", priority=HIGH)
        await cluster.turn()
    return cluster


@pytest.mark.parametrize(
    ("release", "asked", "victims"),
    [(IN_36, [], []), (IN_37, [], []), (IN_38, [{"n0": []}], ["v0"])],
    ids=str,
)
async def test_an_extender_names_all_victims_of_a_node_that_it_turned_down(release, asked, victims):
    """From 1.38 on: plugins need none gone there (kubernetes/kubernetes#135486)."""
    extender = Licences(answer={"n0": (["v0"], 0)})
    cluster = await without_a_licence(release, extender)

    assert (asked, victims) == (extender.asked, evicted(cluster))
    assert ("" if victims else NEEDS_A_VICTIM) in message_of(cluster)


@pytest.mark.parametrize(
    ("release", "message"), [(IN_36, NEEDS_A_VICTIM), (IN_37, NEEDS_A_VICTIM), (IN_38, NO_VICTIMS)], ids=str
)
async def test_no_extender_names_victims_of_a_node_that_one_turned_down(release, message):
    """Evicting any pod there helps nothing."""
    cluster = await without_a_licence(release, TurnsDown())

    assert ([], message) == (evicted(cluster), message_of(cluster))


async def test_a_node_without_victims_goes_on_to_the_next_extender():
    """The first has nothing to add; the second knows who holds the licence."""
    first, second = Extends("first"), Licences("second", {"n0": (["v0"], 0)})
    cluster = await without_a_licence(IN_38, first, second)

    assert [{"n0": []}] == first.asked == second.asked
    assert ["v0"] == evicted(cluster)


@pytest.mark.parametrize("answer", [None, {}], ids=["as it came", "left out"])
@pytest.mark.parametrize("ignorable", [True, False])
async def test_a_node_for_which_no_extender_names_a_victim_is_no_candidate(answer, ignorable):
    """Whether the extender hands it back or leaves it out, and that is no error."""
    cluster = await without_a_licence(IN_38, Licences(answer=answer, ignorable=ignorable))

    assert ([], NO_CANDIDATE) == (evicted(cluster), message_of(cluster))
