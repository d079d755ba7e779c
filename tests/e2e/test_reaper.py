"""What tests start ends with their pytest, in whatever way that one ends."""

import asyncio
import os
import signal
import sys

import pytest

from tests.e2e import never_ending
from tests.e2e.test_ended_by_signals import descendants, runs
from tests.unit.scheduler_at_work import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no /proc and no pidfd")


def heeds_interrupts():
    """Take interrupts, also where this suite was put into the background and ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, 0), (signal.SIGKILL, 1)]
)
async def test_nothing_is_left(tmp_path, number, workers):
    """Neither a server nor a process that has left its session and parent, nor a worker of xdist."""
    note = tmp_path / "note"
    command = ("-m", "pytest", f"-n{workers}", f"--basetemp={tmp_path / 'inner'}", never_ending.__file__)
    environment = {**os.environ, never_ending.NOTE: str(note)}
    tests = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        preexec_fn=heeds_interrupts,
    )
    try:
        await eventually(lambda: (note.exists() and note.read_text()) or tests.returncode is not None)
        started = [*descendants(tests.pid), int(note.read_text())]
        lived = [pid for pid in started if runs(pid)]
        tests.send_signal(number)
        await tests.wait()

        assert started == lived
        await eventually(lambda: not any(map(runs, started)))
    finally:
        if tests.returncode is None:
            tests.kill()
        await tests.wait()
