"""The plugin that the sidecar benchmark starts: filters and scores all nodes at once by their number.

    python -m tests.benchmarks.sidecar_plugin [--grpc] NAME ADDRESS
    python -m tests.benchmarks.sidecar_plugin local [--grpc] NAME ADDRESS
    python -m tests.benchmarks.sidecar_plugin nopods [--grpc] NAME ADDRESS
    python -m tests.benchmarks.sidecar_plugin http

The second says that its answers hold for single nodes and all pods, the third that it does not look at the
pods on nodes either. The last does the same work as an HTTP extender, whose port is printed.
"""

import asyncio
import sys

import click
import msgspec
import numpy as np
from aiohttp import web

from berth_sdk import Plugin, Reason, serve

LEFT_OUT = 10
"""One node of so many is turned down."""


class ByNumber(Plugin):
    """Turns down every tenth node, and scores the others by their number."""

    reasons = (Reason("node(s) had the wrong number"),)

    def __init__(self, name):
        self.name = name
        super().__init__()

    def filter_nodes(self, _pod, nodes):
        return (np.arange(len(nodes)) % LEFT_OUT == 0).astype(np.uint8)

    def score_nodes(self, _pod, nodes):
        return np.arange(len(nodes)) % 101


class Local(ByNumber):
    """The same, with answers that last until something happens to a node."""

    pod_fields = ()
    node_local = True


class OfNodes(Local):
    """The same, whatever pods there are on a node."""

    wants_pods = False


KINDS = {"local": Local, "nopods": OfNodes}


async def extend():
    """Serve the same as an extender that is sent names."""

    async def ask(request):
        names = msgspec.json.decode(await request.read())["NodeNames"]
        if request.path == "/filter":
            reply = {"NodeNames": [name for i, name in enumerate(names) if i % LEFT_OUT]}
        else:
            reply = [{"Host": name, "Score": i % 11} for i, name in enumerate(names)]
        return web.Response(body=msgspec.json.encode(reply), content_type="application/json")

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/{verb}", ask)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    click.echo(runner.addresses[0][1])
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "http":
        asyncio.run(extend())
    else:
        name, address = sys.argv[-2:]
        serve(KINDS.get(sys.argv[1], ByNumber)(name), address, ttrpc="--grpc" not in sys.argv)
