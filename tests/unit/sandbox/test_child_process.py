"""Processes of one's own that end with the one that started them."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from berth.sandbox.child_process import ChildProcess
from tests.unit.scheduler_at_work import eventually

STARTER = """
import asyncio, sys
from pathlib import Path
from berth.sandbox.child_process import ChildProcess

async def main():
    log, note = map(Path, sys.argv[1:])
    sleeper = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    child = await ChildProcess.start("sleeper", sleeper, log, own_session=True)
    note.write_text(str(child.pid))
    await child.wait()

asyncio.run(main())
"""


def ended(pid):
    """Whether the process is no more, or waits to be reaped by a parent that does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return True
    return stat.rsplit(")", 1)[1].split()[0] == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no signal for the end of a parent")
async def test_a_process_ends_with_one_that_is_killed(tmp_path):
    """Though it is in a session of its own, and its starter could do nothing any more."""
    log, note = tmp_path / "log", tmp_path / "pid"
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTER, str(log), str(note))
    await eventually(lambda: log.exists() and "up" in log.read_text(encoding="ascii"))
    await eventually(lambda: note.exists() and note.read_text(encoding="ascii"))
    sleeper = int(note.read_text(encoding="ascii"))
    lives = not ended(sleeper)
    starter.send_signal(signal.SIGKILL)
    await starter.wait()

    assert lives
    await eventually(lambda: ended(sleeper))


async def test_a_process_is_the_command(tmp_path):
    """Its number, its last words and its exit code are the command's own."""
    say = "import os, sys; print(os.getpid()); sys.exit(7)"
    child = await ChildProcess.start("say", [sys.executable, "-c", say], tmp_path / "log")
    await child.wait()

    assert (str(child.pid), 7) == (child.last_words(), child.exit_code)


@pytest.mark.parametrize(("name", "said"), [("etcd", "Permission denied"), ("none", "No such file")])
async def test_a_command_that_cannot_be_executed(tmp_path, name, said):
    """It is an error that says why."""
    (tmp_path / "etcd").write_text("no program", encoding="ascii")

    with pytest.raises(OSError, match=said):
        await ChildProcess.start("etcd", [str(tmp_path / name)], tmp_path / "log")
