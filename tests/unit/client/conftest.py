"""Real servers on loopback whose answers a test scripts, and time that moves when asked to."""

import asyncio
import math
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from aiohttp import web

from berth.client.endpoint import endpoint_of
from berth.client.transport import Transport
from tests.suite import PATIENCE_SECONDS

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FakeClock:
    """A clock that stands still; its sleep moves it on and lets others run."""

    def __init__(self):
        self.seconds = 1000.0
        self.ahead = 0.0
        self.slept = []

    def monotonic(self):
        return self.seconds

    def wall(self):
        return START.timestamp() + self.seconds - 1000.0 + self.ahead

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)

    def after(self, seconds, call):
        self.slept.append(seconds)
        self.seconds += seconds
        return asyncio.get_running_loop().call_soon(call)


@pytest.fixture
def clock():
    return FakeClock()


@asynccontextmanager
async def web_server(handler):
    """Serve every request with an aiohttp handler; gives the URL."""
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_server(serve, *, tls=None):
    """Serve every connection with `serve(reader, writer)`; gives URL and the count of connections."""
    seen, tasks = SimpleNamespace(url="", connections=0), []

    async def on_connection(reader, writer):
        seen.connections += 1
        tasks.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    seen.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        await server.wait_closed()


def tunnel():
    """A proxy that knows CONNECT."""

    async def serve(reader, writer):
        head, _ = await read_request(reader)
        host, _, port = head.split()[1].decode().rpartition(":")
        inner = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await pass_on((reader, writer), inner)

    return raw_server(serve)


async def pass_on(outer, inner, *, from_outer=math.inf, from_inner=math.inf):
    """Copy between two connections until one ends, or has sent so many bytes; the inner one is ended."""

    async def copy(reader, writer, most):
        while most and (data := await reader.read(min(most, 65536))):
            most -= len(data)
            writer.write(data)
            await writer.drain()

    ways = (
        asyncio.create_task(copy(outer[0], inner[1], from_outer)),
        asyncio.create_task(copy(inner[0], outer[1], from_inner)),
    )
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        inner[1].transport.abort()


async def read_request(reader):
    """One request as (head, body)."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head, await reader.readexactly(length)


async def silent(reader, _writer):
    """Read everything, say nothing."""
    await reader.read()


async def silent_later(reader, writer):
    """Answer one request, so that the connection is open, and nothing after it."""
    await read_request(reader)
    writer.write(answer(200))
    await reader.read()


def answer(status, body=b"{}", *headers):
    """The bytes of a complete answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def transport_to(url, **options):
    """A transport that is closed at the end."""
    endpoint = url if not isinstance(url, str) else endpoint_of(url)
    transport = Transport(endpoint, **options)
    try:
        yield transport
    finally:
        await transport.aclose()


async def outcome_of(pods, namespace="ns", name="p", uid="u1", node="n1"):
    """What came of a binding."""
    outcome = asyncio.get_running_loop().create_future()
    pods.bind(namespace, name, uid, node, answered=outcome.set_result)
    return await outcome


async def eventually(claim):
    """Let others run until the claim holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not claim():  # noqa: ASYNC110 - looks into a server's or client's state, which has no event
            await asyncio.sleep(0)
