"""An extender that a test scripts: a real HTTP server on a port of its own that keeps what it was sent."""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web

from berth.config import load
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.extender import ExtenderContext, HttpExtenders


class Webhook:
    """Answers each verb with what `replies` says: JSON, a status number, or a function of the request."""

    def __init__(self, **replies):
        self.replies = replies
        self.requests = []
        self.headers = []
        self.url = ""
        self.arrived, self.released = asyncio.Event(), asyncio.Event()

    async def answer(self, request):
        verb, document = request.path.rpartition("/")[2], json.loads(await request.read())
        self.requests.append((verb, document))
        self.headers.append(request.headers)
        self.arrived.set()
        reply = self.replies[verb]
        if callable(reply):
            reply = reply(document)
        if reply == "never":
            await self.released.wait()
        if isinstance(reply, int):
            return web.Response(status=reply)
        return web.json_response(reply)

    def asked(self, verb):
        return [document for named, document in self.requests if named == verb]


@asynccontextmanager
async def serving(webhook, ssl_context=None):
    """The webhook on loopback, at `webhook.url`."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/{tail:.*}", webhook.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context)
    await site.start()
    scheme = "https" if ssl_context else "http"
    webhook.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}/scheduler/"
    try:
        yield webhook
    finally:
        webhook.released.set()
        await runner.cleanup()


def configured(*extenders):
    """What the configuration makes of these entries, in calling order."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
    }
    return load(json.dumps(document)).extenders


@asynccontextmanager
async def extending(*entries, **around):
    """Clients for these entries of a configuration; `nodes` and `pods` are what the watches kept."""
    nodes, pods = RawObjects[Node](), RawObjects[Pod]()
    clients = HttpExtenders(configured(*entries), ExtenderContext(nodes, pods, **around))
    try:
        yield clients, nodes, pods
    finally:
        await clients.close()


@asynccontextmanager
async def client_of(webhook, **entry):
    """The only extender of a configuration, at the webhook."""
    async with extending({"urlPrefix": webhook.url, **entry}) as (clients, _, _):
        yield clients[0]
