"""Ends the processes that tests have started once their pytest has ended, interrupted or killed included.

    python reaper.py PID MARK

Each process inherits the mark, a variable of its environment, from the one that started it, also in a session
of its own and with a parent that is gone. Nothing of Berth is imported here: this runs beside every pytest.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_LOOK_SECONDS = 0.05


@contextmanager
def watching():
    """Have what is started meanwhile end afterwards, or with this process; on Linux, for /proc and pidfd."""
    if sys.platform != "linux":
        yield
        return
    mark = f"STARTED_BY_TESTS_{os.getpid()}"
    command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), mark]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # In a session of its own it does not hear of an interrupt from the terminal.
    with subprocess.Popen(command, start_new_session=True, **pipes) as reaper:
        reaper.stdout.readline()
        os.environ[mark] = "1"
        yield
        reaper.communicate(b"end")


def marks():
    """What the environment of a process needs beside its own variables, in order to end with this one."""
    return {name: value for name, value in os.environ.items() if name.startswith("STARTED_BY_TESTS_")}


def marked(mark):
    """The numbers of the processes that have the mark."""
    found = []
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if f"{mark}=1".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def main():
    """Wait until the process that is named ends or says so, then end all that have the mark."""
    pid, mark = int(sys.argv[1]), sys.argv[2]
    ended = select.poll()
    for each in (os.pidfd_open(pid), sys.stdin):
        ended.register(each, select.POLLIN)
    print("waiting", flush=True)  # noqa: T201 - what `watching` reads
    if os.getppid() == pid:
        ended.poll()
    while found := marked(mark):
        for each in found:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
