"""A process of one's own on this machine: started with a log file, looked after, ended; its last words.

It ends with this one, even where that is killed.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from errno import EACCES, ENOENT
from pathlib import Path
from shutil import which
from typing import Final, Self

from berth.sandbox import tied_process

GRACE_SECONDS: Final = 10.0
_LAST_WORDS: Final = 3
_LINE_LENGTH: Final = 300


def tied(command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> list[str]:
    """Give a command that is this one, and that the kernel ends when this process ends.

    `folder` is where it is to run, if that is another one than this process's.

    Raises: OSError where there is no program of that name.
    """
    name, *arguments = command
    place = folder / name if folder is not None and os.sep in name else Path(name)
    found = which(place, path=os.pathsep.join(os.get_exec_path(environment)))
    if found is None:
        number = EACCES if place.exists() else ENOENT
        raise OSError(number, os.strerror(number), name)
    return [sys.executable, "-I", "-S", tied_process.__file__, str(os.getpid()), str(found), *arguments]


class ChildProcess:
    """One process, and the file that holds what it says."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        own_session: bool = False,
    ) -> Self:
        """Start a command; what it prints goes into the log.

        In a session of its own it does not hear of an interrupt from the terminal.

        Raises: OSError where the program cannot be executed.
        """
        variables = {**os.environ, **(environment or {})}
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *tied(command, variables),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=variables,
                start_new_session=own_session,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def wait(self) -> None:
        """Wait until it ends by itself."""
        await self._process.wait()

    def last_words(self) -> str:
        """Give the last lines that it said, as one."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        said = [line[:_LINE_LENGTH] for line in lines if line][-_LAST_WORDS:]
        return " | ".join(said) or "it said nothing"

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask it to end, and make it where it does not."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
