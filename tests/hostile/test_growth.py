"""Every field that may repeat costs what its number says, at each stage that reads it."""

import pytest

from tests.hostile.growth import FEW, MAX_GROWTH, growths
from tests.hostile.growth_rows import ROWS


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_entry_costs_the_same_however_many_there_are(row):
    """Counted at 80, 160 and 320; `python -m tests.hostile growth` has the API server's own limit."""
    assert {} == {where: growth for where, growth in growths(row, FEW).items() if growth > MAX_GROWTH}
