"""One HTTP/1.1 pool: keep-alive, deadlines, cuts, limits."""

import asyncio

import pytest
from aiohttp import web

from berth.client.errors import CutError, DeadlineError, HeldBackError, NotSentError
from berth.client.timing import TokenBucket
from berth.client.write_guard import WriteGuard
from tests.unit.client.conftest import (
    answer,
    eventually,
    raw_server,
    read_request,
    silent,
    silent_later,
    transport_to,
    web_server,
)


async def test_keep_alive():
    """Requests one after the other share a connection."""

    async def serve(reader, writer):
        while True:
            head, body = await read_request(reader)
            writer.write(answer(200, head.split()[1] + body))

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        answers = [(await transport.request("POST", f"/{i}", b"x")).body for i in range(3)]

    assert answers == [b"/0x", b"/1x", b"/2x"]
    assert server.connections == 1


async def test_bounded_concurrency():
    """No more requests are under way at once than there are connections allowed."""
    under_way = most = 0

    async def handler(_request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(10):
            await asyncio.sleep(0)
        under_way -= 1
        return web.json_response({})

    async with web_server(handler) as url, transport_to(url, max_connections=3) as transport:
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(20)))

    assert most <= 3


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 6\r\n\r\nab", b"cd", b"ef"], id="torn head"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", b"c\r\n3\r\ndef\r\n0\r\n\r\n"],
            id="chunked",
        ),
        pytest.param(
            [b"HTTP/1.1 103 Early Hints\r\n\r\n", answer(200, b"abcdef")], id="informational answer first"
        ),
    ],
)
async def test_framing(pieces):
    """A body is put together however it is cut up."""

    async def serve(reader, writer):
        await read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        assert (await transport.request("GET", "/")).body == b"abcdef"


async def test_body_until_close():
    """A body without a length ends where the connection does."""

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nabc")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        assert (await transport.request("GET", "/")).body == b"abc"


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 201 Created\r\nContent-Le", id="half a head"),
        pytest.param(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nab", id="half a body"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another protocol"),
    ],
)
async def test_cut_write(part):
    """A write whose answer is cut short is ambiguous, and is not sent again."""

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(part)
        await writer.drain()

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        with pytest.raises(CutError):
            await transport.request("POST", "/", b"{}")

    assert server.connections == 1


async def test_stale_connection_read():
    """A read that met a kept connection the server gave up is sent again on a new one."""

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(answer(200))
        await read_request(reader)

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        statuses = [(await transport.request("GET", "/")).status for _ in range(2)]

    assert statuses == [200, 200]
    assert server.connections == 2


async def test_deadline_after_sending():
    """No answer in time is ambiguous, and the connection is not used again."""
    async with raw_server(silent_later) as server, transport_to(server.url) as transport:
        await transport.request("GET", "/")
        with pytest.raises(DeadlineError):
            await transport.request("GET", "/", timeout_seconds=0.01)
        assert transport._idle == []


async def test_deadline_in_the_body():
    """A body that trickles has the same deadline as one that does not come at all."""

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(answer(200))
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not reader.at_eof():
            writer.write(b"x")
            await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.004)

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        await transport.request("GET", "/")
        with pytest.raises(DeadlineError):
            await transport.request("GET", "/", timeout_seconds=0.02)


async def test_later_request_with_an_earlier_deadline():
    """On a kept connection each request has its own deadline, be it earlier or later than the last."""
    async with raw_server(silent_later) as server, transport_to(server.url) as transport:
        await transport.request("POST", "/", timeout_seconds=100)
        with pytest.raises(DeadlineError):
            await transport.request("POST", "/", timeout_seconds=0.01)

    assert server.connections == 1


async def test_deadline_in_the_queue():
    """A request that found no free connection in time was certainly not sent."""
    async with raw_server(silent) as server, transport_to(server.url, max_connections=1) as transport:
        first = asyncio.create_task(transport.request("GET", "/", timeout_seconds=5))
        await asyncio.sleep(0)
        with pytest.raises(NotSentError):
            await transport.request("POST", "/", timeout_seconds=0.01)
        first.cancel()
        await asyncio.wait([first])


async def test_refused():
    """A port on which nobody listens means that nothing was sent."""
    async with raw_server(None) as server:
        url = server.url
    async with transport_to(url) as transport:
        with pytest.raises(NotSentError):
            await transport.request("POST", "/")


async def test_guard():
    """A guard that says no at the last moment keeps the bytes back."""
    async with raw_server(lambda reader, _: reader.read()) as server, transport_to(server.url) as transport:
        with pytest.raises(HeldBackError):
            await transport.request("POST", "/", guard=WriteGuard(lambda: False))


async def test_cancelled_request():
    """An answer to a request nobody waits for is never taken for the next one's."""
    got = asyncio.Event()

    async def serve(reader, writer):
        head, _ = await read_request(reader)
        if b"/slow" in head:
            got.set()
            await reader.read()
        writer.write(answer(200, b"fast"))
        await reader.read()

    async with raw_server(serve) as server, transport_to(server.url, max_connections=1) as transport:
        slow = asyncio.create_task(transport.request("GET", "/slow"))
        await got.wait()
        slow.cancel()
        await asyncio.wait([slow])

        assert (await transport.request("GET", "/fast")).body == b"fast"


async def test_slow_reader_stops_the_server():
    """A stream nobody reads holds little, and all of it arrives once somebody does."""
    total = 64 * 1024 * 1024
    chunk = b"x" * 65536

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n".encode())
        for _ in range(total // len(chunk)):
            writer.write(chunk)
            await writer.drain()
        await reader.read()

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        stream = await transport.stream("/")
        await eventually(lambda: stream._paused)
        held, received = stream._buffered, 0
        while data := await stream.read():
            received += len(data)

    assert held < 8 * 1024 * 1024
    assert total == received


async def test_rate_limit(clock):
    """A burst passes at once, the rest at the given rate."""
    bucket = TokenBucket(10, 3, clock, clock.sleep)

    for _ in range(6):
        await bucket.acquire()

    expected = [0.1, 0.1, 0.1]
    assert expected == pytest.approx(clock.slept)


async def test_no_rate_limit(clock):
    """A negative rate lets everything pass."""
    bucket = TokenBucket(-1, 0, clock, clock.sleep)

    for _ in range(1000):
        await bucket.acquire()

    assert clock.slept == []
