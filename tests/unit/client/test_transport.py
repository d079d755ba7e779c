"""One HTTP/1.1 pool: keep-alive, deadlines, cuts, limits."""

import asyncio
from contextlib import suppress

import pytest
from aiohttp import web

from berth.client.connections import pool
from berth.client.connections.request_counts import RequestCounts
from berth.client.endpoint import FixedAuthorization, endpoint_of
from berth.client.errors import CutError, DeadlineError, HeldBackError, NotSentError
from berth.client.transport import Post
from berth.client.write_guard import Terms, WriteGuard
from berth.framework.clock import SystemClock
from berth.framework.pacing import TokenBucket
from tests.failures.reporting import reports
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


async def test_a_watch_goes_on_with_its_list_s_connection():
    """Each handshake of TLS that a start saves is a millisecond; one that is closed by then is no failure."""
    begun = []

    async def serve(reader, writer):
        with suppress(asyncio.IncompleteReadError):
            while True:
                head, _ = await read_request(reader)
                path = head.split()[1]
                writer.write(answer(200, path))
                begun.append(path)
                if path == b"/last":
                    await read_request(reader)
                    writer.close()
                    return

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        await transport.request("GET", "/list")
        stream = await transport.stream("/watch")
        assert (b"/watch", 1) == (await stream.read(), server.connections)

        await transport.request("GET", "/last")
        again = await transport.stream("/again")
        assert (b"/again", 3) == (await again.read(), server.connections)


async def test_unused_connections_are_closed(monkeypatch):
    """What a burst opened is closed once it was not used for a while, and what is used stays."""
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.2)
    ended = 0

    async def serve(reader, writer):
        nonlocal ended
        with suppress(asyncio.IncompleteReadError, ConnectionResetError):
            while True:
                await read_request(reader)
                await asyncio.sleep(0.01)
                writer.write(answer(200))
        ended += 1

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(4)))
        for _ in range(10):
            await transport.request("GET", "/")
            await asyncio.sleep(0.05)
        assert (4, 3) == (server.connections, ended)
        await eventually(lambda: ended == 4)


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
        assert transport.pool._idle == []


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
    """A port without a listener means that nothing was sent."""
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
    """An answer to an abandoned request is never taken for the next one's."""
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
    """A stream that is not read keeps little, and all of it arrives once it is read."""
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


def test_rate_limit(clock):
    """A burst passes at once, the rest at the given rate."""
    bucket = TokenBucket(10, 3, clock.monotonic)

    assert [0, 0, 0, 0.1, 0.2, 0.3] == pytest.approx([bucket.reserve() for _ in range(6)])


def test_rate_limit_without_waiting(clock):
    """A request that may not pass now leaves the rate as it is: the next token comes when it would have."""
    bucket = TokenBucket(10, 3, clock.monotonic)
    at_once = [bucket.take() for _ in range(5)]
    clock.seconds += 0.11

    assert [True, True, True, False, False] == at_once
    assert [True, False] == [bucket.take(), bucket.take()]


def test_no_rate_limit(clock):
    """A negative rate lets everything pass."""
    bucket = TokenBucket(-1, 0, clock.monotonic)

    assert {0.0} == {bucket.reserve() for _ in range(1000)}
    assert bucket.take()


async def test_limited_requests_leave_in_order():
    """What the rate limit holds back is sent once its turn has come.

    Over one connection: those of several may be overtaken on their way.
    """
    seen = []

    async def serve(reader, writer):
        while True:
            head, _ = await read_request(reader)
            seen.append(head.split()[1])
            writer.write(answer(200))

    limiter = TokenBucket(1000, 1, SystemClock().monotonic)
    async with (
        raw_server(serve) as server,
        transport_to(server.url, limiter=limiter, max_connections=1) as transport,
    ):
        await asyncio.gather(*(transport.request("GET", f"/{i}") for i in range(5)))

    assert [b"/0", b"/1", b"/2", b"/3", b"/4"] == seen


async def test_beyond_the_rate_limit():
    """A request whose turn comes after its deadline was certainly not sent."""
    limiter = TokenBucket(0.001, 1, SystemClock().monotonic)
    async with raw_server(silent) as server, transport_to(server.url, limiter=limiter) as transport:
        limiter.reserve()
        with pytest.raises(NotSentError, match="rate limit"):
            await transport.request("POST", "/", timeout_seconds=0.01)

    assert server.connections == 0


async def test_refused_while_many_wait():
    """Each request that waits for a connection gets to know that there is none."""
    async with raw_server(None) as server:
        url = server.url
    async with transport_to(url, max_connections=2) as transport:
        outcomes = await asyncio.gather(
            *(transport.request("POST", "/") for _ in range(50)), return_exceptions=True
        )

    assert {NotSentError} == {type(outcome) for outcome in outcomes}


async def test_held_back_while_many_wait():
    """However many wait when the right to write ends, none of them is sent, and each learns of it."""
    writes = WriteGuard()
    begun, go_on, heads = asyncio.Event(), asyncio.Event(), []

    async def serve(reader, writer):
        while True:
            heads.append((await read_request(reader))[0])
            begun.set()
            await go_on.wait()
            writer.write(answer(200))

    async with raw_server(serve) as server, transport_to(server.url, max_connections=1) as transport:
        first = asyncio.create_task(transport.request("POST", "/", guard=writes))
        await begun.wait()
        others = [asyncio.create_task(transport.request("POST", "/", guard=writes)) for _ in range(2000)]
        await asyncio.sleep(0)
        writes.close()
        go_on.set()
        outcomes = await asyncio.gather(first, *others, return_exceptions=True)

    assert {HeldBackError} == {type(outcome) for outcome in outcomes[1:]}
    assert (200, 1) == (outcomes[0].status, len(heads))


async def test_a_callback_writes_by_the_right_of_who_asked():
    """What is sent from a callback is refused as soon as the term is over in which the work was begun."""
    writes, terms, outcomes, done = WriteGuard(), Terms(), [], asyncio.Event()

    async def serve(reader, writer):
        while True:
            await read_request(reader)
            writer.write(answer(200))

    async with raw_server(serve) as server, transport_to(server.url) as transport:

        def again(outcome):
            outcomes.append(outcome)
            if len(outcomes) == 2:
                done.set()
            else:
                transport.send("POST", "/", b"", again, guard=writes)

        async def term():
            terms.begin()
            transport.send("POST", "/", b"", again, guard=writes)

        await asyncio.create_task(term())
        await asyncio.create_task(_next_term(terms))
        await done.wait()

    assert {HeldBackError} == {type(outcome) for outcome in outcomes}


async def _next_term(terms):
    terms.begin()


@reports("contradicted", log="`outcome not taken`, with a traceback, where what handles an answer breaks")
async def test_a_callback_that_fails_costs_no_connection(caplog):
    """The next request has the connection, and the log has the failure."""

    async def serve(reader, writer):
        while True:
            await read_request(reader)
            writer.write(answer(200))

    def broken(outcome):
        raise ValueError(outcome)

    async with raw_server(serve) as server, transport_to(server.url, max_connections=1) as transport:
        transport.send("POST", "/", b"", broken)
        assert 200 == (await transport.request("POST", "/")).status

    assert "outcome not taken" in caplog.text
    assert server.connections == 1


# Several in one write.


def together(transport, count, outcomes, done, **options):
    """Send that many posts; `outcomes` takes what comes of each, by its number."""

    def took(number):
        def outcome(answer):
            outcomes[number] = answer
            if len(outcomes) == count:
                done.set()

        return outcome

    posts = [Post("POST", f"/{i}", b"x", "text/plain", took(i)) for i in range(count)]
    transport.send_together(posts, **options)


async def test_requests_of_one_write_have_their_own_answers():
    """Answers belong to requests in their order, however they are cut up; the connection is kept."""
    outcomes, done = {}, asyncio.Event()

    async def serve(reader, writer):
        heads = [(await read_request(reader))[0] for _ in range(3)]
        answers = b"".join(answer(200 + i, head.split()[1]) for i, head in enumerate(heads))
        for piece in (answers[:10], answers[10:100], answers[100:]):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        await read_request(reader)
        writer.write(answer(200))

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        together(transport, 3, outcomes, done)
        await done.wait()
        await transport.request("GET", "/")

    assert [(200, b"/0"), (201, b"/1"), (202, b"/2")] == [outcomes[i][:2] for i in range(3)]
    assert 1 == server.connections


@pytest.mark.parametrize(
    "last",
    [b"", b"HTTP/1.1 201 Created\r\nContent-Le", b"nonsense\r\n\r\n"],
    ids=["closed", "half", "other"],
)
async def test_a_cut_leaves_those_in_doubt_that_were_not_answered(last):
    """What was answered before stands."""
    outcomes, done = {}, asyncio.Event()

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(answer(201) + last)
        await writer.drain()

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        together(transport, 3, outcomes, done)
        await done.wait()

    assert (201, CutError, CutError) == (outcomes[0].status, type(outcomes[1]), type(outcomes[2]))


async def test_a_server_that_ends_the_connection_answers_no_more():
    """After `Connection: close` nothing comes for the requests that were sent behind."""
    outcomes, done = {}, asyncio.Event()

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(answer(201, b"{}", "Connection: close"))
        await reader.read()

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        together(transport, 2, outcomes, done)
        await done.wait()

    assert (201, CutError) == (outcomes[0].status, type(outcomes[1]))


async def test_each_of_a_write_is_sent_again_with_new_credentials():
    """A 401 was not executed, so that each that met one is repeated by itself."""
    outcomes, done, tokens = {}, asyncio.Event(), ["old", "new"]

    class Renews(FixedAuthorization):
        def current(self):
            return tokens[0]

        async def refresh(self, *, rejected=False):
            assert rejected
            tokens[0] = "new"
            return "new"

    async def serve(reader, writer):
        while True:
            head, _ = await read_request(reader)
            writer.write(answer(201 if b"Authorization: new" in head else 401))

    async with raw_server(serve) as server:
        endpoint = endpoint_of(server.url)
        endpoint.authorization = Renews()
        async with transport_to(endpoint) as transport:
            together(transport, 3, outcomes, done)
            await done.wait()

    assert {201} == {outcome.status for outcome in outcomes.values()}


async def test_no_connection_for_several_in_time():
    """None of them was sent."""
    outcomes, done = {}, asyncio.Event()
    async with raw_server(silent) as server, transport_to(server.url, max_connections=1) as transport:
        first = asyncio.create_task(transport.request("GET", "/", timeout_seconds=5))
        await eventually(lambda: server.connections)
        together(transport, 2, outcomes, done, timeout_seconds=0.01)
        await done.wait()
        first.cancel()
        await asyncio.wait([first])

    assert [NotSentError, NotSentError] == [type(outcome) for outcome in outcomes.values()]


async def test_requests_are_counted():
    """By status code and method, with its time; a stream counts as it begins, a cut as an error."""

    async def serve(reader, writer):
        while True:
            head, _ = await read_request(reader)
            if b"/cut" in head:
                writer.close()
                return
            writer.write(answer(404 if b"/absent" in head else 200, b"{}"))

    async with raw_server(serve) as server, transport_to(server.url) as transport:
        for path in ("/", "/", "/absent"):
            await transport.request("GET", path)
        await transport.request("POST", "/")
        (await transport.stream("/watch")).close()
        with pytest.raises(CutError):
            await transport.request("POST", "/cut")
        counts = transport.counts

    assert {("200", "GET"): 3, ("404", "GET"): 1, ("200", "POST"): 1, ("<error>", "POST"): 1} == counts.codes
    assert {"GET": 4, "POST": 2} == {method: sum(each.counts) for method, each in counts.durations.items()}


async def test_request_that_never_left_took_no_time():
    """A server that is away is an error of each request, without a duration."""
    async with raw_server(silent) as server:
        url = server.url
    async with transport_to(url, request_seconds=0.2) as transport:
        with pytest.raises(NotSentError):
            await transport.request("GET", "/")

    assert ({("<error>", "GET"): 1}, {}) == (transport.counts.codes, transport.counts.durations)


def test_status_that_http_does_not_know():
    """What a server makes up is no label."""
    counts = RequestCounts()
    counts.answered("GET", 999, 0.1)

    assert {("<error>", "GET"): 1} == counts.codes
