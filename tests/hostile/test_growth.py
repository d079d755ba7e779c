"""Every field that may repeat costs what its number says, at each stage that reads it."""

import gc

import pytest

from tests.hostile.growth import FEW, MAX_GROWTH, growths
from tests.hostile.growth_rows import ROWS


@pytest.fixture(scope="module", autouse=True)
def _few_objects():
    """Leave what other tests keep out of what is collected after each step."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_entry_costs_the_same_however_many_there_are(row):
    """Counted at 40, 80 and 160; `python -m tests.hostile growth` has the API server's own limit."""
    assert {} == {where: growth for where, growth in growths(row, FEW).items() if growth > MAX_GROWTH}
