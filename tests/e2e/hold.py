"""A scheduler held up by an extender that it asks about one pod, while others come together in its queue.

Without that it may try a group before all of its pods are there, if chance has it so.
"""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

from tests.e2e.side_by_side import pod

HELD = "example.com/hold"
FITS_NOWHERE = json.dumps({"nodeNames": [], "failedNodes": {}})
ANSWER = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(FITS_NOWHERE)}\r\n\r\n{FITS_NOWHERE}"
).encode()


class Hold:
    """The extender: it answers when it is let go."""

    def __init__(self):
        self.url = ""
        self.asked, self.released = asyncio.Event(), asyncio.Event()

    def configuration(self):
        """Its entry in a scheduler's configuration."""
        managed = f"{{name: {HELD}, ignoredByScheduler: true}}"
        return (
            f"extenders: [{{urlPrefix: '{self.url}', filterVerb: filter, nodeCacheCapable: true,"
            f" httpTimeout: 60s, managedResources: [{managed}]}}]\n"
        )

    async def answer(self, reader, writer):
        """Answer one request after the other on a connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
                self.asked.set()
                await self.released.wait()
                writer.write(ANSWER)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def holding():
    """An extender that is being served."""
    hold = Hold()
    server = await asyncio.start_server(hold.answer, "127.0.0.1", 0)
    hold.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield hold
    finally:
        hold.released.set()
        server.close()


def held_pod(name):
    """A pod that fits on every node, however full: only the extender, which is asked about it, refuses."""
    everywhere = [{"operator": "Exists"}]
    return pod(name, "0", requests={HELD: "1"}, preemptionPolicy="Never", tolerations=everywhere)
