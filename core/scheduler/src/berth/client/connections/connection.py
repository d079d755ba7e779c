"""One keep-alive HTTP/1.1 connection: raw bytes out, raw bytes in, one write at a time.

The states of a connection:

    opening ─► idle ─► waiting ─► idle                 send(): whole answers, one for each request
                 │        └─► closed                   deadline, cut, given up, `Connection: close`
                 └─► waiting ─► streaming ─► closed    send(stream=True): the body as it comes

Answers are handed to callbacks in the loop's turn in which their last byte arrives: no task waits for one.

Called by: pool, which opens, lends and takes back connections.
Source: docs/decisions/0002-http-engine.md says why this is not a library's client.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
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
MAX_RETRY_AFTER_SECONDS = 30.0
"""A longer Retry-After counts as this, the longest pause of client-go's reflector.

A proxy that names a day must not keep a mirror from being read for a day.

Source: tools/cache/reflector.go (Kubernetes v1.36).
"""


class Response(NamedTuple):
    """A complete answer.

    Units: retry_after_seconds, 0 when the server named none, MAX_RETRY_AFTER_SECONDS at most.
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


Answer = Response | BodyStream | ClientError
OnAnswer = Callable[[Answer], None]


class Connection(asyncio.Protocol):
    """A connection to one server. Everything public is called from its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._awaited: deque[OnAnswer] = deque()
        self._answers: list[Response | BodyStream] = []
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
        self.kept = False
        """Whether it has carried a request before: the server may have closed it meanwhile."""

    # What the transport calls.

    def send(self, data: bytes, deadline: float, *on_answers: OnAnswer, stream: bool = False) -> None:
        """Send requests in one write; each callback gets its answer, or what came in place of one, once.

        Answers come in the order of the requests, all before the deadline. A stream is an answer as soon as
        its head is here. After a CutError or DeadlineError the connection is closed.
        Units: deadline, a time of the event loop.
        """
        if self.closed or self._transport is None:
            for on_answer in on_answers:
                on_answer(CutError("the connection was closed"))
            return
        self._wants_stream = stream
        self._awaited.extend(on_answers)
        self._expect_by(deadline)
        self._transport.write(data)

    def give_up(self) -> None:
        """Make no callback any more; an answer may still come, so that the connection is not lent again."""
        self._awaited.clear()
        self.reset()

    def abort(self) -> None:
        """Close at once, without sending what is still buffered."""
        self.closed = True
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Close at once; what the kernel still holds is dropped, and nothing arrives after its deadline."""
        if self._transport is not None and not self.closed:
            # The loop may have closed the socket, and not have come to say so.
            with suppress(AttributeError, OSError):
                self._transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, DISCARD)
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
        if not self._awaited or self.closed:
            return
        if self._deadline > self._loop.time():
            self._expect_by(self._deadline)
            return
        # The request may still be on its way: it is taken back as far as that can be done, then given up.
        self.reset()
        self._end_all(DeadlineError("no answer before the deadline"))

    def _cut(self, problem: str) -> None:
        """End what is not complete; answers that are, stand."""
        error = CutError(problem)
        if self._stream is not None:
            self._stream.finish(error)
        self._hand_on()
        self._end_all(error)

    def _hand_on(self) -> None:
        """Hand on the answers that are complete, as far as they are awaited."""
        answers, self._answers = self._answers, []
        for answer in answers:
            if self._awaited:
                self._awaited.popleft()(answer)

    def _end_all(self, error: ClientError) -> None:
        """Nothing that is awaited comes any more."""
        while self._awaited:
            self._awaited.popleft()(error)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; the connection is idle now."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse what came, hand on the answers in it; anything but HTTP/1.1 ends the connection."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.abort()
            self._cut(f"the server does not speak HTTP/1.1: {error}")
            return
        if self._answers:
            self._hand_on()
            if self.closed:
                self._end_all(CutError("the server closed the connection after an answer"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is under way: a body without a length ends well here, all else does not."""
        self.closed = True
        self._stop_timer()
        if exc is None and self._status and not self._framed:
            self.on_message_complete()
        self._cut(f"the connection was cut: {exc or 'closed by the server'}")

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
            self._retry_after = min(float(value), MAX_RETRY_AFTER_SECONDS)

    def on_headers_complete(self) -> None:
        """Answer with a stream now, if one is wanted."""
        self._status = self._parser.get_status_code()
        if self._wants_stream and self._status not in INFORMATIONAL:
            self._stream = BodyStream(self, self._status, self._retry_after)
            self._take(self._stream)

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
        pieces, self._pieces = self._pieces, []
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._take(Response(status, body, self._retry_after))

    def _take(self, answer: Response | BodyStream) -> None:
        """Keep the answer until the parser is done with what it was given."""
        if len(self._answers) == len(self._awaited):
            self.abort()  # An answer to no request: the two sides disagree about where we are.
        else:
            self._answers.append(answer)
