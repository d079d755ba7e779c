"""One server process: started, looked after, ended; its last words where it ends by itself."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from berth.sandbox.errors import SandboxError

GRACE_SECONDS: Final = 10.0
_LAST_WORDS: Final = 3
_LINE_LENGTH: Final = 300


class ServerProcess:
    """A running server and the file that holds what it says."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    async def start(cls, command: Sequence[str], log: Path) -> Self:
        """Start it. Raises: SandboxError where the program cannot be executed."""
        name = Path(command[0]).name
        with log.open("wb") as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # An interrupt from the terminal is for the sandbox, which ends both in their order.
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxError(f"cannot start {command[0]}: {error.strerror}") from None
        return cls(name, process, log)

    def check(self) -> None:
        """Raises: SandboxError with its last words where it has ended."""
        code = self._process.returncode
        if code is not None:
            raise SandboxError(f"{self.name} ended with exit code {code}: {self.last_words()}")

    async def wait(self) -> None:
        """Wait until it ends by itself."""
        await self._process.wait()

    def last_words(self) -> str:
        """Give the last lines that it said, as one."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        said = [line[:_LINE_LENGTH] for line in lines if line][-_LAST_WORDS:]
        return " | ".join(said) or "it said nothing"

    async def stop(self) -> None:
        """Ask it to end, and make it where it does not."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
