"""Unix sockets that plugin processes serve."""

import asyncio
import os
import socket
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from tests.suite import PATIENCE_SECONDS


def listens(path):
    """Whether connections are accepted there: a server's file appears a moment before it listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


async def served(path, process):
    """Wait until a plugin's process serves its socket."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not listens(path):
            assert process.returncode is None
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(*command, **environment):
    """The plugin of that command at work, behind a socket in a folder of its own; gives its address."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        address = f"unix:{folder}/p.sock"
        process = await asyncio.create_subprocess_exec(
            *command, "--address", address, "--log-level", "warn", env={**os.environ, **environment}
        )
        try:
            await served(Path(folder, "p.sock"), process)
            yield address
        finally:
            process.terminate()
            await process.wait()
