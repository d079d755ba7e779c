"""Groups and trees by chance, against a model of the specification (tests/chance/groups)."""

import pytest

from tests.chance.groups.playing import compared


@pytest.mark.parametrize("seed", range(12))
async def test_decides_as_the_model(seed):
    """What is bound, evicted, nominated and said is what the model has, after each arrival."""
    assert [] == await compared(seed)
