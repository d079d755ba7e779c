"""How the process is run."""

import asyncio
import platform
import sys

import pytest

from berth.scheduler.loop.event_loop import LOOP_VARIABLE, give_back_what_is_free, run
from berth.serving.errors import StartError
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


async def loops(found):
    found.append(type(asyncio.get_running_loop()).__module__.partition(".")[0])


@pytest.mark.parametrize(
    ("named", "used"),
    [(None, "uvloop"), ("", "uvloop"), ("uvloop", "uvloop"), ("asyncio", "asyncio")],
)
def test_the_event_loop(named, used, monkeypatch):
    """uvloop, unless the other one is named."""
    monkeypatch.delenv(LOOP_VARIABLE)
    if named is not None:
        monkeypatch.setenv(LOOP_VARIABLE, named)
    found = []
    run(loops(found))

    assert [used] == found


def test_asyncio_where_uvloop_is_not_installed(monkeypatch):
    monkeypatch.delenv(LOOP_VARIABLE)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    found = []
    run(loops(found))

    assert ["asyncio"] == found


@pytest.mark.parametrize(
    ("named", "problem"),
    [("trio", "'trio' is no event loop: set asyncio or uvloop"), ("uvloop", "uvloop is not installed")],
)
def test_an_event_loop_that_there_is_not(named, problem, monkeypatch):
    monkeypatch.setenv(LOOP_VARIABLE, named)
    monkeypatch.setitem(sys.modules, "uvloop", None)

    with pytest.raises(StartError, match=problem):
        run(loops([]))
