"""The secure port, asked by whatever reaches it; the clients are a process of their own."""

import asyncio
import resource
import sys

from berth.demo.processes import Child
from tests.hostile.arena import pod
from tests.hostile.clients import ASKING, IDLE
from tests.hostile.playing import Case
from tests.hostile.test_shapes_of_pods import pod_affinity

TERMS = 3_000


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


async def ask_about_many_terms(arena):
    """A pod of 3,000 terms, none of which holds, that is asked about again and again."""
    await arena.write(pod("many-terms", **pod_affinity(TERMS)))
    await clients("explain")(arena)


CASES = (
    Case(
        "E1",
        "viewer",
        f"{ASKING} connections that ask explain about a pod of {TERMS:,} terms",
        ask_about_many_terms,
    ),
    Case("M3", "client", f"{IDLE:,} idle TLS connections", clients("idle")),
    Case("N1", "client", "300 connections whose headers never end", clients("headers")),
    Case("N2", "client", "20 readers of /metrics that do not read, 200 requests each", clients("readers")),
    Case("N3", "client", "a body of 100 MB to /livez, again and again", clients("bodies")),
)
