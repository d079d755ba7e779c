"""How a mirror of pods or nodes is shown to be up to date: what each way takes, in time and bytes.

In a cluster of 50,000 pods of 3 KB and 5,000 nodes, or of `--pods` and a tenth as many nodes; `--real` takes
a real API server. docs/decisions/0022-fence.md chooses between the ways.
"""

import asyncio
import json
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import click
import msgspec

from berth.client.api import MERGE_PATCH, Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import CONFIG_MAPS, NODES, PODS
from berth.client.transport import Transport
from berth.client.watching import reflector as reflecting
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource, current_version, pages, split_lines
from berth.client.wire import decode_head, decode_watch_event, encode
from berth.demo.processes import Child
from berth.sandbox.real.loading import load
from tests.benchmarks.tables import Table, quantiles
from tests.e2e.api_servers import ApiServer
from tests.e2e.faults import node, pod

LARGE_PODS, ROUNDS = 50_000, 5
PADDING_BYTES = 2_500
START_SECONDS = 120.0
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
WHOLE = "application/json"


class Counting(Transport):
    """Counts the bytes of all bodies; may ask for metadata alone."""

    def __init__(self, *args, accept=WHOLE, **options):
        super().__init__(*args, **options)
        self.bytes, self._accept = 0, accept

    def _headers(self, authorization):
        return super()._headers(authorization).replace(f"Accept: {WHOLE}", f"Accept: {self._accept}")

    async def request(self, *args, **options):
        response = await super().request(*args, **options)
        self.bytes += len(response.body)
        return response

    async def stream(self, *args, **options):
        stream = await super().stream(*args, **options)
        feed = stream.feed

        def counted(piece):
            self.bytes += len(piece)
            feed(piece)

        stream.feed = counted
        return stream


class Nothing:
    """A handler that takes no note."""

    def on_add(self, obj):
        """Nothing."""

    def on_update(self, old, new):
        """Nothing."""

    def on_delete(self, obj):
        """Nothing."""

    def on_synced(self):
        """Nothing."""


def run(options):
    """A table of the ways, for pods and for nodes."""
    asyncio.run(measured(options.pods or LARGE_PODS, options.rounds or ROUNDS, ApiServer(real=options.real)))


async def measured(pods, rounds, server):
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        async with api_server(Path(folder), server) as endpoint:
            await fill(endpoint, pods)
            which = "a real API server" if server.real else "the sandbox"
            headings = ["way", "least s", "p50 s", "most s", "MB"]
            for source in (WatchSource(NODES), WatchSource(PODS)):
                table = Table(f"{source.resource.plural} of {pods:,} pods' cluster, {which}", headings)
                for name, way in WAYS.items():
                    samples = [await way(endpoint, source) for _ in range(rounds)]
                    seconds, counted = zip(*samples, strict=True)
                    figures = [f"{each:.3f}" for each in quantiles(seconds, 0.0, 0.5, 1.0)]
                    table.add(name, *figures, f"{max(counted) / 1e6:.3f}")
                table.show()


@asynccontextmanager
async def api_server(folder, server):
    """A server process, and where it is."""
    kubeconfig = folder / "kubeconfig"
    command = server.command(str(kubeconfig), "--no-kubelets")
    child = await Child.start("api server", command, folder / "log")
    try:
        await child.wait_for(kubeconfig, START_SECONDS)
        yield load_endpoint(kubeconfig=str(kubeconfig), environ={})
    finally:
        await child.stop()


async def fill(endpoint, count):
    """Create pods of 3 KB, ten on each node."""
    began = time.monotonic()
    transport = Transport(endpoint, max_connections=32)
    padding = [{"name": "PADDING", "value": "x" * PADDING_BYTES}]
    documents = [node(f"n{i}", pods=100) for i in range(count // 10)]
    documents += [pod(f"p{i}", nodeName=f"n{i % (count // 10)}") for i in range(count)]
    for document in documents:
        document.pop("status", None)
        for container in document.get("spec", {}).get("containers", ()):
            container["env"] = padding
    await load(Api(transport), documents)
    await transport.aclose()
    click.echo(f"filled in {time.monotonic() - began:.0f} s", err=True)


@asynccontextmanager
async def mirror(endpoint, source):
    """A mirror that watches, and its transport."""
    transport = Counting(endpoint)
    found = Reflector(transport, source, msgspec.json.decode, Nothing())
    task = asyncio.create_task(found.run())
    try:
        await found.wait_synced(START_SECONDS)
        while not found.statistics.watches:  # noqa: ASYNC110 - a mirror's state, which has no event
            await asyncio.sleep(0.01)
        yield found, transport
    finally:
        task.cancel()
        await asyncio.wait([task])
        await transport.aclose()


async def by_bookmark(endpoint, source):
    """Nothing of the kind changes: a short watch brings a bookmark."""
    async with mirror(endpoint, source) as (found, transport):
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "other-"}}
        await Api(transport).create(CONFIG_MAPS, "default", encode(other))
        wanted = await current_version(transport, source)
        return await timed(lambda: found._reached_by_bookmark(wanted), transport)


async def by_event(endpoint, source):
    """An object of the kind changes every 20 ms, as in a cluster of that size."""
    writer = Api(Transport(endpoint))

    async def change():
        path = PODS.path("default", "p1") if source.resource is PODS else NODES.path("", "n1")
        for number in range(10_000):
            body = json.dumps({"metadata": {"labels": {"turn": str(number)}}}).encode()
            await writer.call("PATCH", path, body, content_type=MERGE_PATCH)
            await asyncio.sleep(0.02)

    changing = asyncio.create_task(change())
    try:
        async with mirror(endpoint, source) as (found, transport):
            return await timed(found.prove, transport)
    finally:
        changing.cancel()
        with suppress(asyncio.CancelledError):
            await changing
        await writer.transport.aclose()


async def by_list(endpoint, source):
    """The whole list, page by page, into the mirror."""
    async with mirror(endpoint, source) as (found, transport):
        return await timed(found._listed_anew, transport)


async def by_metadata(endpoint, source):
    """The metadata of all, for their UIDs and versions."""
    transport = Counting(endpoint, accept=METADATA)

    async def listed():
        async for page in pages(transport, source):
            for raw in page.items or ():
                decode_head(raw)

    try:
        return await timed(listed, transport)
    finally:
        await transport.aclose()


async def by_watch_list(endpoint, source):
    """A watch that begins with all objects and says where they end."""
    transport = Counting(endpoint)

    async def watched():
        query = {
            "watch": "true",
            "sendInitialEvents": "true",
            "allowWatchBookmarks": "true",
            "resourceVersionMatch": "NotOlderThan",
            "timeoutSeconds": 300,
        }
        stream = await transport.stream(source.resource.collection(), query=query)
        async for lines in split_lines(stream):
            for line in lines:
                event = decode_watch_event(line)
                decode_head(event.object)
                if event.type == "BOOKMARK":
                    stream.close()
                    return

    try:
        return await timed(watched, transport)
    finally:
        await transport.aclose()


async def by_version(endpoint, source):
    """The consistent read alone, which every proof begins with."""
    transport = Counting(endpoint)
    try:
        return await timed(lambda: current_version(transport, source), transport)
    finally:
        await transport.aclose()


async def timed(way, transport):
    """How long it takes, and the bytes of its answers."""
    before, began = transport.bytes, time.monotonic()
    await way()
    return time.monotonic() - began, transport.bytes - before


WAYS = {
    "version read": by_version,
    f"version, event within {reflecting.GRACE_SECONDS} s": by_event,
    "bookmark of a short watch": by_bookmark,
    "list of metadata": by_metadata,
    "full list": by_list,
    "WatchList": by_watch_list,
}
