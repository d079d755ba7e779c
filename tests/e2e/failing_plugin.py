"""A plugin that fails as a pod's label says: python -m tests.e2e.failing_plugin NAME TRANSPORT SOCKET.

TRANSPORT is `ttrpc`, `converse` or `unary`; the label is `failure/NAME`.
"""

import asyncio
import json
import os
import signal
import sys

from berth_sdk import Plugin
from tests.unit.conformance.broken import BrokenServer, Fault

TRANSPORTS = ("ttrpc", "converse", "unary")
FAR_AHEAD = 1000
"""A generation for which a call waits in vain."""


class Lenient(Plugin):
    """Every node will do."""

    def __init__(self, name):
        self.name = name

    def filter(self, pod, node):
        del pod, node


def failing(name, transport):
    """The plugin of that name, over that transport."""

    async def call(server, method, request, proceed):
        del server
        failure = _failure(name, request) if method == "Filter" else ""
        match failure:
            case "silent":
                request.call.generation += FAR_AHEAD
            case "lost":
                os._exit(1)
            case "refused":
                request.call.pod.ClearField("object")
        response = await proceed(request)
        if failure == "short":
            response.verdicts.each = b"\0"
        if method == "Handshake":
            response.capabilities.converse = transport == "converse"
        return response

    return Fault(call, plugin=lambda: Lenient(name))


def _failure(name, request):
    return json.loads(request.call.pod.object)["metadata"].get("labels", {}).get(f"failure/{name}")


class Served(BrokenServer):
    """The server, with ttrpc or without."""

    def __init__(self, fault, address, *, ttrpc):
        super().__init__(fault, address)
        self._wants_ttrpc = ttrpc


async def main(name, transport, socket):
    """Serve it until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    server = Served(failing(name, transport), f"unix:{socket}", ttrpc=transport == "ttrpc")
    await server.start()
    await stopped.wait()
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
