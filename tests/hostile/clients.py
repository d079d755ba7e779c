"""Clients of the secure port that do one hostile deed: `python -m tests.hostile.clients DEED PORT`."""

import asyncio
import resource
import sys
from collections import Counter
from contextlib import suppress

import aiohttp
import click

from tests.hostile.arena import LOOPBACK, anything

IDLE, AT_ONCE = 1_500, 8
HEADERS, READERS, REQUESTS = 300, 20, 200
MEGABYTE = 1_000_000
ASKING = 15
GIVEN_UP_SECONDS = 5
"""After which a connection is not waited for: the next one is tried."""
EXPLAINED = "/apis/explain.berth.dev/v1alpha1/namespaces/default/podexplanations/many-terms"


async def connected(port):
    """A connection with TLS."""
    async with asyncio.timeout(GIVEN_UP_SECONDS):
        return await asyncio.open_connection(LOOPBACK, port, ssl=anything())


async def idle(port):
    """Connections on which nothing is asked."""
    held = []

    async def some():
        for _ in range(IDLE // AT_ONCE):
            with suppress(OSError, TimeoutError):
                held.append(await connected(port))

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    click.echo(f"{len(held)} connections held")
    await asyncio.Event().wait()


async def headers(port):
    """Requests whose headers never end."""

    async def one():
        with suppress(OSError, TimeoutError):
            _reader, writer = await connected(port)
            writer.write(b"GET /livez HTTP/1.1\r\n")
            while True:
                writer.write(b"X-A: b\r\n")
                await writer.drain()
                await asyncio.sleep(1)

    await asyncio.gather(*(one() for _ in range(HEADERS)))
    click.echo("all were closed")


async def readers(port):
    """Requests for much, whose answers are never read."""

    async def one():
        with suppress(OSError, TimeoutError):
            _reader, writer = await connected(port)
            writer.transport.pause_reading()
            for _ in range(REQUESTS):
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            await asyncio.Event().wait()

    await asyncio.gather(*(one() for _ in range(READERS)))


async def bodies(port):
    """Long bodies, one after the other."""
    while True:
        with suppress(OSError, TimeoutError):
            reader, writer = await connected(port)
            writer.write(b"PUT /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
            for _ in range(100):
                writer.write(b"x" * MEGABYTE)
                await writer.drain()
            await reader.read(1_000)


async def explain(port):
    """Explanations of one pod, one after the other on each connection; says how many came, by status."""
    came = Counter()

    async def one():
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(f"https://{LOOPBACK}:{port}{EXPLAINED}", ssl=False) as response:
                    await response.read()
                    came[response.status] += 1

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        asking = [asyncio.create_task(one()) for _ in range(ASKING)]
        while True:
            await asyncio.sleep(1)
            click.echo(f"{len(asking)} connections, explanations by status: {dict(came)}")


DEEDS = {"explain": explain, "idle": idle, "headers": headers, "readers": readers, "bodies": bodies}

if __name__ == "__main__":
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, IDLE + 1_000), hard))
    asyncio.run(DEEDS[sys.argv[1]](int(sys.argv[2])))
