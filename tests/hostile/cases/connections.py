"""The secure port, asked by whatever reaches it; the clients are a process of their own."""

import asyncio
import resource
import sys

from berth.demo.processes import Child
from tests.hostile.clients import IDLE
from tests.hostile.playing import Case


def clients(deed):
    """That process at work, until it is cancelled."""

    async def attack(arena):
        # The limit of the usual container runtime, whatever this machine's is.
        resource.prlimit(arena.scheduler.pid, resource.RLIMIT_NOFILE, (1_024, 1_024))
        command = (sys.executable, "-m", "tests.hostile.clients", deed, str(arena.surface.port))
        child = await Child.start("clients", command, arena.folder / "clients.log")
        try:
            await asyncio.Event().wait()
        finally:
            await child.stop()
            arena.notes["clients"] = child.last_words()

    return attack


CASES = (
    Case("M3", "client", f"{IDLE:,} idle TLS connections", clients("idle")),
    Case("N1", "client", "300 connections whose headers never end", clients("headers")),
    Case("N2", "client", "20 readers of /metrics that do not read, 200 requests each", clients("readers")),
    Case("N3", "client", "a body of 100 MB to /livez, again and again", clients("bodies")),
)
