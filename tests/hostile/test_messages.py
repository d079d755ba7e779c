"""Messages of which users, nodes or plugins write parts: what is kept and written of them is bounded."""

import pytest

from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.status import MAX_CHARACTERS, failed, unschedulable
from berth.testing.builders import make_node
from tests.fakes import Binds, Rejects, framework, make_core, pending

LONG = "x" * 3_000_000


def unfit(reason):
    diagnosis = Diagnosis(node_names=["n0"])
    diagnosis.single[0] = unschedulable(reason)
    return failed(FitError(diagnosis, 1))


@pytest.mark.parametrize(
    "status",
    [unschedulable(LONG), unschedulable(*["x" * 100] * 10_000), failed(LONG), unfit(LONG)],
    ids=["one reason", "many reasons", "an error", "a reason of a node"],
)
def test_a_message_is_cut(status):
    """It ends with an ellipsis; its beginning stays."""
    assert MAX_CHARACTERS == len(status.message)
    assert status.message.endswith("x...")


@pytest.mark.parametrize("reason", ["x", "x" * (MAX_CHARACTERS - 40)])
def test_a_message_below_the_bound_is_upstreams(reason):
    """Not a character of it changes."""
    assert f"0/1 nodes are available: 1 {reason}." == unfit(reason).message


async def test_a_condition_is_bounded():
    """However long the reason is that a plugin gives."""
    w = make_core(framework(filter=[Rejects("Long", {"n0": LONG})], bind=[Binds()]), make_node("n0"))
    w.add_pod(pending())
    await w.turn()

    assert [MAX_CHARACTERS] == [len(condition.message) for condition in w.conditions]
