"""The secure port, asked by whatever reaches it."""

import asyncio
import resource
import socket
import threading
from contextlib import suppress

from tests.hostile.arena import LOOPBACK, anything
from tests.hostile.playing import Case

IDLE = 1_500
AT_ONCE = 6


def room_for(connections):
    """Let this process have more open files than its scheduler, which was started before."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, connections + 1_000), hard))


async def idle_connections(arena):
    room_for(IDLE)
    # The limit of the usual container runtime, whatever this machine's is.
    resource.prlimit(arena.scheduler.pid, resource.RLIMIT_NOFILE, (1_024, 1_024))
    held, ended = [], threading.Event()
    try:
        together = (asyncio.to_thread(connect, arena.surface.port, held, ended) for _ in range(AT_ONCE))
        await asyncio.gather(*together)
        await asyncio.Event().wait()
    finally:
        ended.set()
        arena.notes["held"] = f"{len(held)} connections held"
        for each in held:
            each.close()


def connect(port, held, ended):
    """Open a share of the connections, in a thread: shaking hands is work for the one who attacks, too."""
    context = anything()
    for _ in range(IDLE // AT_ONCE):
        if ended.is_set():
            return
        with suppress(OSError):
            plain = socket.create_connection((LOOPBACK, port), timeout=5)
            held.append(context.wrap_socket(plain))


async def endless_headers(arena):
    async def one():
        with suppress(OSError):
            _reader, writer = await asyncio.open_connection(LOOPBACK, arena.surface.port, ssl=anything())
            writer.write(b"GET /livez HTTP/1.1\r\n")
            while True:
                writer.write(b"X-A: b\r\n")
                await writer.drain()
                await asyncio.sleep(1)

    await asyncio.gather(*(one() for _ in range(300)))


async def slow_readers(arena):
    async def one():
        with suppress(OSError):
            _reader, writer = await asyncio.open_connection(
                LOOPBACK, arena.surface.port, ssl=anything(), limit=1
            )
            writer.transport.pause_reading()
            for _ in range(200):
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            await asyncio.Event().wait()

    await asyncio.gather(*(one() for _ in range(20)))


async def large_body(arena):
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(LOOPBACK, arena.surface.port, ssl=anything())
            writer.write(b"PUT /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
            for _ in range(100):
                writer.write(b"x" * 1_000_000)
                await writer.drain()
            await reader.read(1_000)


CASES = (
    Case("M3", "client", f"{IDLE:,} idle TLS connections", idle_connections),
    Case("N1", "client", "300 connections whose headers never end", endless_headers),
    Case("N2", "client", "20 readers of /metrics that do not read, 200 requests each", slow_readers),
    Case("N3", "client", "a body of 100 MB to /livez, again and again", large_body),
)
