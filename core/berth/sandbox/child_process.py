"""A process of one's own on this machine: started with a log file, looked after, ended; its last words."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from berth.sandbox import tied_process

GRACE_SECONDS: Final = 10.0
_LAST_WORDS: Final = 3
_LINE_LENGTH: Final = 300


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
        tied: bool = False,
    ) -> Self:
        """Start a command; what it prints goes into the log.

        In a session of its own it does not hear of an interrupt from the terminal. Tied, it ends with this
        process, even where that one is killed; its command begins with a path then.

        Raises: OSError where the program cannot be executed; one that is tied ends at once in its place.
        """
        tie = (sys.executable, "-I", "-S", tied_process.__file__, str(os.getpid())) if tied else ()
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *tie,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
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
