"""The secure port among clients that open connections and do nothing good with them."""

import asyncio
import logging
import socket
import ssl
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvloop

from berth.sandbox.free_port import free_port
from berth.serving import connections, request_bounds
from berth.serving.access import allow_all, forbid_all
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.listening import listen
from berth.serving.request_bounds import MAX_ANSWERED, MAX_BODY_BYTES, MAX_CONNECTIONS
from berth.serving.serving_certificate import SelfMade
from tests.suite import PATIENCE_SECONDS

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
HUGE = b"x" * (64 << 20)
"""More than any socket's buffers hold."""
PROBE_FROM = "127.0.0.2"


def no_check():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


TRUSTING = no_check()
CERTIFICATE = SelfMade()


async def nothing():
    """Do nothing."""


class Port:
    """A secure port, and clients of it that are closed with the test."""

    def __init__(self, server, stack):
        self.server, self._stack = server, stack

    async def connect(self, *, tls=True, source="127.0.0.1"):
        """A connection from that address: its reader and writer."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            self.server.port,
            ssl=TRUSTING if tls else None,
            local_addr=(source, 0),
            limit=1 << 20,
        )
        self._stack.callback(gone, writer)
        return reader, writer

    async def ask(self, path, *, method="GET", head="", body=b"", source="127.0.0.1"):
        """The status and the body of an answer on a connection of its own."""
        reader, writer = await self.connect(source=source)
        return await exchanged(reader, writer, path, method=method, head=head, body=body)

    @property
    def open(self):
        return len(self.server.connections)

    async def left(self):
        """Wait until no connection is open."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.open:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.001)
        return True


def gone(writer):
    """Leave without a word."""
    writer.close()
    writer.transport.abort()


async def exchanged(reader, writer, path, *, method="GET", head="", body=b""):
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length: ")[2].split()[0])
    return int(answer.split()[1]), await reader.readexactly(length)


@asynccontextmanager
async def serving(review=allow_all, **changes):
    port = free_port()
    endpoints = Endpoints(
        **{"metrics": lambda _: b"up 1\n", "reset_metrics": nothing, "configuration": dict} | changes
    )
    server = await SecureServer.start(listen("127.0.0.1", port), CERTIFICATE, endpoints, review=review)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        yield Port(server, stack)


def on(loop, test):
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(test)


async def ended(reader):
    """Wait until the server has closed the connection."""
    try:
        while await reader.read(1 << 16):
            pass
    except (ConnectionError, ssl.SSLError):
        return


@pytest.mark.parametrize("loop", LOOPS)
def test_a_probe_gets_in_among_2000_idle_connections(loop):
    """Some say nothing, some only begin a request; those that are kept are no more than the bound."""

    async def body():
        async with serving(forbid_all) as port:
            for _ in range(1_800):
                await port.connect(tls=False)
            for _ in range(200):
                _, writer = await port.connect()
                writer.write(b"GET /livez HTTP/1.1\r\n")
            answer = await port.ask("/livez")
            return answer, port.open

    answer, kept = on(loop, body())
    assert (200, b"ok") == answer
    assert MAX_CONNECTIONS >= kept


@pytest.mark.parametrize("loop", LOOPS)
def test_clients_that_open_many_close_their_own(loop):
    """A connection from another address stays, though it has been idle longer than any of theirs."""

    async def body():
        async with serving(forbid_all) as port:
            reader, writer = await port.connect(source=PROBE_FROM)
            for _ in range(2 * MAX_CONNECTIONS):
                await port.connect(tls=False)
            return await exchanged(reader, writer, "/livez")

    assert (200, b"ok") == on(loop, body())


async def test_the_idlest_gives_way():
    """Of one client's connections, the one that was used last stays longest."""
    async with serving(forbid_all) as port:
        first, second = await port.connect(), await port.connect()
        await exchanged(*first, "/livez")
        for _ in range(MAX_CONNECTIONS - 1):
            await port.connect(tls=False)
        await ended(second[0])

        assert (200, b"ok") == await exchanged(*first, "/livez")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handshake_that_never_comes(loop, monkeypatch):
    """The connection is closed when its time is over, and its place is free."""
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.01)

    async def body():
        async with serving() as port:
            reader, _ = await port.connect(tls=False)
            await ended(reader)
            return await port.left()

    assert on(loop, body())


@pytest.mark.parametrize(
    "sent", [b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"]
)
async def test_a_head_that_never_ends(sent, monkeypatch):
    """Before the first request, in the midst of one, and after it: an idle connection is closed."""
    monkeypatch.setitem(request_bounds.REQUEST_HANDLING, "keepalive_timeout", 0.05)
    async with serving() as port:
        reader, writer = await port.connect()
        writer.write(sent)
        await ended(reader)

        assert await port.left()


async def test_a_head_that_is_too_long():
    """It is refused without being read to its end."""
    async with serving() as port:
        reader, writer = await port.connect()
        writer.write(b"GET /livez HTTP/1.1\r\n" + b"X: " + b"x" * (1 << 20))

        assert (await reader.readline()).startswith(b"HTTP/1.0 400")


async def test_what_is_not_http_leaves_no_stack_in_the_log(caplog):
    """Any client can send it, as often as it likes."""
    async with serving() as port:
        reader, writer = await port.connect()
        writer.write(b"\x00\x01\x02\r\n\r\n")
        await ended(reader)

    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_body_that_is_too_large():
    """It is refused, whatever page it is for."""
    async with serving() as port:
        too_much = MAX_BODY_BYTES + 1
        status, _ = await port.ask("/metrics", head=f"Content-Length: {too_much}\r\n", body=b"x" * too_much)

        assert 413 == status


async def test_a_body_that_never_comes(monkeypatch):
    """It is waited for, but not without end."""
    monkeypatch.setattr("berth.serving.gate.BODY_SECONDS", 0.01)
    async with serving() as port:
        assert 408 == (await port.ask("/metrics", head="Content-Length: 5\r\n"))[0]


async def test_a_slow_reader_keeps_no_probe_waiting():
    """While an answer waits to be read, health is answered."""
    async with serving(metrics=lambda _: HUGE) as port:
        reader, writer = await port.connect()
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readline()

        assert (200, b"ok") == await port.ask("/livez")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_reader_that_stopped(loop, monkeypatch):
    """It loses its connection, and with it the answer that was kept for it."""
    monkeypatch.setattr(request_bounds, "WRITE_SECONDS", 0.05)
    monkeypatch.setitem(request_bounds.REQUEST_HANDLING, "keepalive_timeout", 3600.0)

    async def body():
        async with serving(metrics=lambda _: HUGE) as port:
            _, writer = await port.connect()
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            return await port.left()

    assert on(loop, body())


async def test_more_requests_than_are_answered_at_once():
    """The next one is asked to come later, and health is answered all the same."""
    release = asyncio.Event()

    async def cache():
        await release.wait()
        return {}

    async with serving(cache=cache) as port:
        waiting = [asyncio.create_task(port.ask("/debug/cache")) for _ in range(MAX_ANSWERED)]
        while (later := await port.ask("/configz"))[0] == 200:
            pass
        healthy = await port.ask("/livez")
        release.set()
        answered = [status for status, _ in await asyncio.gather(*waiting)]

    assert 429 == later[0]
    assert (200, b"ok") == healthy
    assert [200] * MAX_ANSWERED == answered


async def test_connections_at_work_do_not_give_way():
    """A request that is being answered is never cut off for a new connection."""
    release = asyncio.Event()
    asked = asyncio.Event()

    async def cache():
        asked.set()
        await release.wait()
        return {}

    async with serving(cache=cache) as port:
        working = asyncio.create_task(port.ask("/debug/cache"))
        await asked.wait()
        for _ in range(2 * MAX_CONNECTIONS):
            await port.connect(tls=False)
        release.set()

        assert (200, b"{}") == await working


class Listener(socket.socket):
    """Notes what is accepted, after so many refusals by the system."""

    def __init__(self, refusals=0):
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self.accepted, self.refused, self._refusals = [], 0, refusals
        self.bind(("127.0.0.1", 0))
        self.listen()

    def accept(self):
        if self.refused < self._refusals:
            self.refused += 1
            raise OSError(24, "Too many open files")
        accepted, address = super().accept()
        self.accepted.append(accepted)
        return accepted, address

    async def serve(self):
        """A secure port on this socket."""
        return await SecureServer.start(self, CERTIFICATE, Endpoints(lambda _: b"", nothing, dict))


async def test_no_file_descriptor_is_left():
    """A connection that the system refuses to give makes room, and the next one is accepted."""
    listener = Listener(refusals=1)
    server = await listener.serve()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)

        assert (200, b"ok") == await Port(server, stack).ask("/livez")
        assert (1, 1) == (listener.refused, len(listener.accepted))


@pytest.mark.parametrize("rounds", range(8))
@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_while_the_port_closes(loop, rounds):
    """However far it has come, its socket is closed with the port."""

    async def body():
        listener = Listener()
        server = await listener.serve()
        with socket.create_connection(listener.getsockname()):
            for _ in range(rounds):
                await asyncio.sleep(0)
            await server.close()
            return [accepted.fileno() for accepted in listener.accepted]

    assert {-1} >= set(on(loop, body()))
