"""One keep-alive HTTP/1.1 connection: raw bytes out, raw bytes in, one request at a time.

The states of a connection:

    opening ─► idle ─► waiting ─► idle             request(): the whole answer at once
                 │        └─► closed               deadline, cut, cancelled, `Connection: close`
                 └─► waiting ─► streaming ─► closed    stream(): the body as it comes

Called by: transport, which opens, lends and takes back connections.
Source: docs/decisions/0002-http-engine.md says why this is not a library's client.
"""

import asyncio
import struct
from collections import deque
from socket import SO_LINGER, SOL_SOCKET
from typing import NamedTuple, cast

import httptools

from berth.client.errors import ClientError, CutError, DeadlineError

# Retry-After, Content-Length, Transfer-Encoding: the rest is not even looked at.
NOTED_LENGTHS = frozenset({11, 14, 17})
INFORMATIONAL = range(100, 200)
# Linger for no time: what the kernel has not sent when the connection is closed, it drops.
DISCARD = struct.pack("ii", 1, 0)
HIGH_WATER_BYTES = 4 * 1024 * 1024


class Response(NamedTuple):
    """A complete answer.

    Units: retry_after_seconds, 0 when the server named none.
    """

    status: int
    body: bytes
    retry_after_seconds: float = 0.0


class BodyStream:
    """The body of an answer as it arrives, in pieces of no particular shape."""

    def __init__(self, connection: "Connection", status: int, retry_after_seconds: float) -> None:
        self.status = status
        self.retry_after_seconds = retry_after_seconds
        self._connection = connection
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._paused = False
        self._end: ClientError | None = None
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """Everything that has arrived, at least one byte; empty at the end of the body.

        Raises: CutError when the connection ended in the middle of the body.
        """
        while not self._pieces:
            if self._ended:
                if self._end is not None:
                    raise self._end
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._paused:
            self._paused = False
            self._connection.resume()
        return data

    def close(self) -> None:
        """Give the stream up; its connection is not used again."""
        self._connection.abort()

    def feed(self, piece: bytes) -> None:
        """Take a piece of the body; a reader that lags stops the server from sending more."""
        self._pieces.append(piece)
        self._buffered += len(piece)
        if self._buffered > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self._connection.pause()
        self._wake()

    def finish(self, error: ClientError | None) -> None:
        """Note that no more will come, and whether that is an error."""
        if not self._ended:
            self._ended, self._end = True, error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """A connection to one server. Everything public is called from its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[Response | BodyStream] | None = None
        self._stream: BodyStream | None = None
        self._wants_stream = False
        self._pieces: list[bytes] = []
        self._status = 0
        self._framed = False
        self._retry_after = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self.closed = False
        self.idle_since = 0.0

    # What the transport calls.

    async def request(self, data: bytes, deadline: float) -> Response:
        """Send a request and wait for the whole answer.

        Units: deadline, a time of the event loop.
        Raises: CutError, DeadlineError; the connection is closed then.
        """
        return cast("Response", await self._exchange(data, deadline, stream=False))

    async def stream(self, data: bytes, deadline: float) -> BodyStream:
        """Send a request and wait for the head of its answer, before the deadline.

        Raises: CutError, DeadlineError; the connection is closed then.
        """
        return cast("BodyStream", await self._exchange(data, deadline, stream=True))

    async def _exchange(self, data: bytes, deadline: float, *, stream: bool) -> Response | BodyStream:
        if self.closed or self._transport is None:
            raise CutError("the connection was closed")
        self._wants_stream = stream
        waiter: asyncio.Future[Response | BodyStream] = self._loop.create_future()
        self._waiter = waiter
        self._expect_by(deadline)
        try:
            self._transport.write(data)
            return await waiter
        except BaseException:
            # An answer may still come for a request nobody waits for: never lend this one again.
            self.reset()
            raise
        finally:
            self._waiter = None

    def abort(self) -> None:
        """Close at once, without sending what is still buffered."""
        self.closed = True
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Close at once; what the kernel still holds is dropped, and nothing arrives after its deadline."""
        if self._transport is not None and not self.closed:
            socket = self._transport.get_extra_info("socket")
            socket.setsockopt(SOL_SOCKET, SO_LINGER, DISCARD)
        self.abort()

    def pause(self) -> None:
        """Stop reading until resume()."""
        if self._transport is not None and not self.closed:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self.closed:
            self._transport.resume_reading()

    def _expect_by(self, deadline: float) -> None:
        """Have the timer go off at the deadline, or earlier.

        One timer serves many requests: most are answered long before it goes off, and starting and
        cancelling one for each is a tenth of what a request costs.
        """
        self._deadline = deadline
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if self._waiter is None or self.closed:
            return
        if self._deadline > self._loop.time():
            self._expect_by(self._deadline)
            return
        self._fail(DeadlineError("no answer before the deadline"))
        self.reset()

    def _fail(self, error: ClientError) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        if self._stream is not None:
            self._stream.finish(error)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; the connection is idle now."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse what came; anything but HTTP/1.1 ends the connection."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(CutError(f"the server does not speak HTTP/1.1: {error}"))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is under way: a body without a length ends well here, all else does not."""
        self.closed = True
        self._stop_timer()
        if exc is None and self._status and not self._framed:
            self.on_message_complete()
        else:
            self._fail(CutError(f"the connection was cut: {exc or 'closed by the server'}"))

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Forget the message before."""
        self._pieces = []
        self._retry_after = 0.0
        self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the few headers that matter."""
        if len(name) not in NOTED_LENGTHS:
            return
        name = name.lower()
        if name in {b"content-length", b"transfer-encoding"}:
            self._framed = True
        elif name == b"retry-after" and value.isdigit():
            self._retry_after = float(value)

    def on_headers_complete(self) -> None:
        """Answer with a stream now, if one is wanted."""
        self._status = self._parser.get_status_code()
        if self._wants_stream and self._status not in INFORMATIONAL:
            self._stream = BodyStream(self, self._status, self._retry_after)
            self._answer(self._stream)

    def on_body(self, body: bytes) -> None:
        """Collect or hand on a piece of the body."""
        if self._stream is not None:
            self._stream.feed(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Answer with the whole message, or end the stream."""
        status, self._status = self._status, 0
        if status in INFORMATIONAL:
            return
        if self._stream is not None:
            self._stream.finish(None)
            self.abort()
            return
        if not self._parser.should_keep_alive():
            self.abort()
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._answer(Response(status, body, self._retry_after))

    def _answer(self, result: Response | BodyStream) -> None:
        if self._waiter is None:
            self.abort()  # An answer to no request: the two sides disagree about where we are.
        elif not self._waiter.done():
            self._waiter.set_result(result)
