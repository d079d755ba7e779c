"""Unix sockets that plugin processes serve."""

import asyncio
import socket


def listens(path):
    """Whether somebody accepts connections there: a server's file appears a moment before it listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


async def served(path, process):
    """Wait until a plugin's process serves its socket."""
    async with asyncio.timeout(60):
        while not listens(path):
            assert process.returncode is None
            await asyncio.sleep(0.01)
