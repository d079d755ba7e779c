"""The PreFilter phase."""

import pytest

from berth.evaluation.points.pre_filtering import run_pre_filters
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unresolvable, unschedulable
from berth.testing.builders import make_node
from berth.testing.clusters import table
from tests.fakes import PreFilters, attempt_at

NODES = table([make_node("n1"), make_node("n2")])


async def outcome(*plugins):
    attempt = attempt_at(NODES)
    return await run_pre_filters(plugins, attempt), attempt.state


async def test_all_pass():
    found, state = await outcome(PreFilters("A"), PreFilters("B"))

    assert (SUCCESS, None, ()) == (found.status, found.node_names, found.narrowing)
    assert frozenset() == state.skip_filter


async def test_a_skipping_plugin_sits_out_even_its_node_names():
    found, state = await outcome(PreFilters("A", SKIP, ["n1"]), PreFilters("B", node_names=["n2"]))

    assert frozenset({"A"}) == state.skip_filter
    assert frozenset({"n2"}) == found.node_names
    assert ("B",) == found.narrowing


async def test_unschedulable_lets_the_others_run_and_the_last_one_counts():
    calls = []
    found, _ = await outcome(
        PreFilters("A", unschedulable("a"), calls=calls),
        PreFilters("B", unschedulable("b"), calls=calls),
        PreFilters("C", calls=calls),
    )

    assert unschedulable("b").from_plugin("B") == found.status
    assert ["A.pre_filter", "B.pre_filter", "C.pre_filter"] == calls


async def test_unresolvable_ends_the_phase_and_forgets_who_narrowed():
    calls = []
    found, state = await outcome(
        PreFilters("S", SKIP, calls=calls),
        PreFilters("A", node_names=["n1"], calls=calls),
        PreFilters("B", unresolvable("b"), calls=calls),
        PreFilters("C", calls=calls),
    )

    assert unresolvable("b").from_plugin("B") == found.status
    assert () == found.narrowing
    assert "C.pre_filter" not in calls
    assert frozenset({"S"}) == state.skip_filter


@pytest.mark.parametrize(
    "answer",
    [failed("boom"), Status(Code.PENDING, ("boom",)), Status(Code.WAIT, ("boom",)), ValueError("boom")],
    ids=["error", "pending", "wait", "exception"],
)
async def test_any_other_answer_is_an_error(answer):
    found, _ = await outcome(PreFilters("A", answer), PreFilters("B", unschedulable("b")))

    assert Code.ERROR is found.status.code
    assert 'running PreFilter plugin "A": boom' == found.status.message
    assert "A" == found.status.plugin


async def test_node_names_are_intersected():
    found, _ = await outcome(
        PreFilters("B", node_names=["n1", "n2"]), PreFilters("C"), PreFilters("A", node_names=["n2", "n3"])
    )

    assert frozenset({"n2"}) == found.node_names
    assert ("A", "B") == found.narrowing


@pytest.mark.parametrize(
    ("plugins", "message", "narrowing"),
    [
        ([PreFilters("A", node_names=[])], "node(s) didn't satisfy plugin A", ("A",)),
        (
            [PreFilters("B", node_names=["n1"]), PreFilters("A", node_names=["n2"])],
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
            ("A", "B"),
        ),
        (
            [PreFilters("U", unschedulable("lost")), PreFilters("A", node_names=[])],
            "node(s) didn't satisfy plugin A",
            ("A",),
        ),
    ],
)
async def test_nothing_left_ends_the_phase(plugins, message, narrowing):
    """The status names no plugin of its own; those that narrowed are the rejectors."""
    last = PreFilters("Z")
    found, _ = await outcome(*plugins, last)

    assert unresolvable(message) == found.status
    assert narrowing == found.narrowing
    assert [] == last.calls
