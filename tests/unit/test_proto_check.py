"""A service of the released plugin protocol gains no calls."""

import pytest

from tests.proto_check import BASELINE, added_calls, descriptors, services

SCHEDULING = "berth.plugin.v1.SchedulingService"


@pytest.mark.parametrize(
    ("today", "problems"),
    [
        pytest.param({SCHEDULING: {"Filter"}}, 0, id="the same"),
        pytest.param({SCHEDULING: {"Filter", "Undo"}}, 1, id="one more call"),
        pytest.param({SCHEDULING: {"Filter"}, "UndoService": {"Undo"}}, 0, id="a service of its own"),
        pytest.param({SCHEDULING: {"Filter", "Converse"}}, 0, id="one from before the rule"),
    ],
)
def test_added_calls(today, problems):
    """What a plugin without an SDK would lack is named, with what to do instead."""
    found = added_calls({SCHEDULING: {"Filter"}}, today)

    assert problems == len(found)
    assert all(one.startswith(f"{SCHEDULING}.Undo: ") and "a service of its own" in one for one in found)


def test_the_protocol_of_today():
    """Nothing was added to a released service beside what is named."""
    released, today = services(BASELINE.read_bytes()), services(descriptors())

    assert SCHEDULING in released
    assert [] == added_calls(released, today)
