"""The real processes of a run: watched and measured."""

import asyncio
import os
import sys
from pathlib import Path
from shutil import which

import msgspec

from berth.demo.errors import ChildFailedError, DemoError
from berth.sandbox.child_process import ChildProcess

POLL_SECONDS = 0.05


class Usage(msgspec.Struct, frozen=True):
    """What a process has used so far. Units: CPU seconds, peak memory in MiB."""

    cpu_seconds: float
    peak_mebibytes: float


class Child(ChildProcess):
    """One running process with its log file."""

    def check(self) -> None:
        """Raises: ChildFailedError where the process has ended."""
        if self.exit_code is not None:
            raise ChildFailedError(self.name, self.exit_code, self.last_words(), self.log)

    async def wait_for(self, path: Path, timeout_seconds: float) -> None:
        """Wait until the process has made that file.

        Raises: ChildFailedError, DemoError where it takes too long.
        """
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while not await asyncio.to_thread(path.exists):
            self.check()
            if asyncio.get_running_loop().time() > deadline:
                raise DemoError(f"{self.name} was not ready after {timeout_seconds:g} s (log: {self.log})")
            await asyncio.sleep(POLL_SECONDS)

    def usage(self) -> Usage:
        """What it has used, as the kernel accounts it; zeros where that cannot be read."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return Usage(0.0, 0.0)
        ticks = int(fields[11]) + int(fields[12])
        peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(peak) / 1024)


def program(name: str) -> str:
    """The path of an installed command, the one beside this Python first.

    Raises: DemoError where it is not installed.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else which(name)
    if found is None:
        raise DemoError(f"{name} is not installed: run `make run`, or install the package that has it")
    return found
