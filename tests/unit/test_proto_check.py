"""A service of the released plugin protocol gains no calls, and what plugins receive no variants."""

import pytest

from tests.proto_check import (
    BASELINE,
    added_calls,
    added_variants,
    additions,
    descriptors,
    received_oneofs,
    services,
)

SCHEDULING = "berth.plugin.v1.SchedulingService"
CALL = "berth.plugin.v1.ConverseRequest.call"


@pytest.mark.parametrize(
    ("today", "problems"),
    [
        pytest.param({SCHEDULING: {"Filter"}}, 0, id="the same"),
        pytest.param({SCHEDULING: {"Filter", "Undo"}}, 1, id="one more call"),
        pytest.param({SCHEDULING: {"Filter"}, "UndoService": {"Undo"}}, 0, id="a service of its own"),
    ],
)
def test_added_calls(today, problems):
    """What a plugin without an SDK would lack is named, with what to do instead."""
    found = added_calls({SCHEDULING: {"Filter"}}, today)

    assert problems == len(found)
    assert all(one.startswith(f"{SCHEDULING}.Undo: ") and "a service of its own" in one for one in found)


def test_added_variants():
    """What an exhaustive match in a plugin would lack is named, with what to do instead."""
    (found,) = added_variants({CALL: {"filter"}}, {CALL: {"filter", "undo"}, "another.oneof": {"x"}})

    assert found.startswith(f"{CALL}.undo: ")


def test_what_plugins_receive():
    """Oneofs of requests count, those of answers and of recordings do not."""
    found = received_oneofs(descriptors())

    assert "filter" in found[CALL]
    assert not [oneof for oneof in found if "Response" in oneof or "Recording" in oneof]


def test_the_protocol_of_today():
    """Nothing was added to the released contract, which has the calls about placements apart."""
    released = BASELINE.read_bytes()

    assert "GeneratePlacements" not in services(released)[SCHEDULING]
    assert [] == additions(released, descriptors())
