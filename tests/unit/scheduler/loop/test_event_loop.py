"""How the process is run."""

import platform

import pytest

from berth.scheduler.loop.event_loop import give_back_what_is_free
from tests.benchmarks.start import resident_mebibytes

BLOCKS, BLOCK_BYTES, ONE_STAYS_IN = 20_000, 3_000, 100


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such call")
def test_free_memory_is_given_back():
    """What is freed between blocks that stay is the system's again."""
    blocks = [b"x" * BLOCK_BYTES + b"%d" % i for i in range(BLOCKS)]
    staying = blocks[::ONE_STAYS_IN]
    del blocks
    before = resident_mebibytes("self")
    give_back_what_is_free()

    assert len(staying) * ONE_STAYS_IN == BLOCKS
    assert before - resident_mebibytes("self") > BLOCKS * BLOCK_BYTES / (1 << 20) / 2
