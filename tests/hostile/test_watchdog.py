"""No plugin of this process works for long without a look at the cycle's meter, whatever objects say."""

import pytest

from tests.hostile.growth_rows import ROWS
from tests.hostile.turns import calls_of_turns

PART = 16
"""Rows of many entries have so many times fewer than are read at most."""
MANY = 1_000
AS_PROTOBUF = 2
"""How many times as many entries fit into what is written as protobuf, where bytes are what bounds them."""
SIGNING = "sign"
"""What is signed does not grow with the object: a larger spec than 64 KiB is not signed."""
MAX_CALLS = 650_000
"""About 100 ms of calls."""


@pytest.mark.parametrize("row", [row for row in ROWS if row.cycle], ids=str)
def test_a_plugin_looks_at_the_meter_often_enough(row):
    """Each in-tree plugin x each row, in one cycle a row: its turns are measured apart.

    All in-tree plugins of the default profile are asked about a pod that the row is of, or concerns, first as
    in any cycle, then each as if it were alone, so that none is left out for what another one said.
    """
    limit = row.at_the_limit()
    part = PART if limit > MANY else 1
    times = part * AS_PROTOBUF if row.max_entries is None else part
    cycle = row.cycle(limit // part)
    found = calls_of_turns(cycle)

    asked = {plugin.name for plugin in (*cycle.framework.plugins.pre_filter, *cycle.framework.plugins.filter)}
    assert set() == asked - found.keys()
    signed = found.pop(SIGNING, 0)
    assert signed < MAX_CALLS
    assert {} == {plugin: calls for plugin, calls in found.items() if calls * times >= MAX_CALLS}
