"""Starts with TLS and leader election: a few of those of `python -m tests.e2e.start_storm`."""

import pytest

from tests.e2e.start_storm import run
from tests.suite import LOOPS

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_start_beside_a_busy_process(tmp_path, loop):
    """It gets the lease, binds and ends well on either event loop, and one that follows it does so, too."""
    assert [] == await run(tmp_path, starts=2, busy=1, loop=loop)
