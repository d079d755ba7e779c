"""HTTP/1.1 over asyncio: keep-alive, pipelining, and watches as chunked streams.

Answers are made without waiting: a request is parsed, answered and written within one call of the loop.
A watch is pulled when its collection was written to, once for all writes of that loop turn, and not while
the client's socket is full: then it falls behind in the history at no cost in memory.
docs/decisions/0003-sandbox-http-engine.md says why this is not a framework.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, cast
from urllib.parse import unquote, unquote_plus

import httptools
import msgspec

from berth.sandbox.errors import ApiError
from berth.sandbox.request import (
    Answer,
    CompleteAnswer,
    Deferred,
    EventStream,
    ReceivedRequest,
    json_response,
)

Handler = Callable[[ReceivedRequest], Answer]

_LOG: Final = logging.getLogger(__name__)
_REASONS: Final = {200: b"OK", 201: b"Created", 202: b"Accepted", 400: b"Bad Request", 404: b"Not Found"}
_MAX_BODY: Final = 12 << 20
# Answers up to this size are written in one piece.
_AT_ONCE: Final = 1 << 18
_BOOKMARK_SECONDS: Final = 30.0
# The last bookmark comes this long before a watch's time is up, and none where its time is shorter.
# Source: staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, nextBookmarkTime (v1.36).
_BEFORE_END_SECONDS: Final = 2.0
_END: Final = b"0\r\n\r\n"


def _failed(request: ReceivedRequest, error: BaseException) -> CompleteAnswer:
    _LOG.error("request failed method=%s path=%s", request.method, request.path, exc_info=error)
    text = f"Internal error occurred: {error!r}"
    return json_response(ApiError(500, "InternalError", text).status(), 500)


def _head(answer: CompleteAnswer | EventStream, status: int, framing: bytes, warnings: list[str]) -> bytes:
    reason = _REASONS.get(status, b"Status")
    lines = b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s" % (
        status,
        reason,
        answer.content_type.encode(),
        framing,
    )
    for text in warnings:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        lines += f'Warning: 299 - "{quoted}"\r\n'.encode()
    return lines + b"Cache-Control: no-cache, private\r\n\r\n"


class _Arrived(msgspec.Struct, frozen=True):
    """A request that is waiting for its turn."""

    request: ReceivedRequest
    keep_alive: bool
    too_large: bool


class HttpConnection(asyncio.Protocol):
    """One client's connection: requests are answered one after the other, in the order of their arrival."""

    def __init__(self, handler: Handler, connections: set["HttpConnection"]) -> None:
        self._handler = handler
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._queue: deque[_Arrived] = deque()
        self._stream: _Stream | None = None
        self._deferred: asyncio.Task[CompleteAnswer] | None = None
        self._outgoing: Iterator[bytes] | None = None
        self._paused = False
        self._closing = False
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """End; a watch lets go of the store."""
        self._connections.discard(self)
        self._closing = True
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._deferred is not None:
            self._deferred.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._transport.close()
        except httptools.HttpParserError as error:
            text = f"malformed HTTP request: {error}"
            self._send(json_response(ApiError.bad_request(text).status(), 400), [], head_only=False)
            self._transport.close()

    def pause_writing(self) -> None:
        """Hold back while the client does not read."""
        self._paused = True
        if self._stream is not None:
            self._stream.paused = True

    def resume_writing(self) -> None:
        """Go on."""
        self._paused = False
        if self._stream is not None:
            self._stream.paused = False
            self._stream.wake()
        elif self._outgoing is not None:
            self._feed()

    def close(self) -> None:
        """Hang up once what was answered is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Hang up at once."""
        self._transport.abort()

    def on_url(self, url: bytes) -> None:
        """Collect the request line."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Tell a client that asks first to send its body."""
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect the body, up to a limit."""
        self._size += len(body)
        if self._size <= _MAX_BODY:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer the request, when those before it are answered."""
        arrived = _Arrived(self._request(), self._parser.should_keep_alive(), self._size > _MAX_BODY)
        self._reset()
        self._queue.append(arrived)
        self._advance()

    def _advance(self) -> None:
        while self._queue and not self._busy() and not self._closing:
            self._serve(self._queue.popleft())

    def _busy(self) -> bool:
        return not (self._stream is None and self._outgoing is None and self._deferred is None)

    def _serve(self, arrived: "_Arrived") -> None:
        request = arrived.request
        self._closing = not arrived.keep_alive
        if arrived.too_large:
            text = f"Request entity too large: limit is {_MAX_BODY}"
            answer: Answer = json_response(ApiError(413, "RequestEntityTooLarge", text).status(), 413)
        else:
            answer = self._answer(request)
        if isinstance(answer, CompleteAnswer):
            self._send(answer, request.warnings, head_only=request.method == "HEAD")
        elif isinstance(answer, Deferred):
            self._wait(answer, request)
        else:
            self._transport.write(_head(answer, 200, b"Transfer-Encoding: chunked\r\n", request.warnings))
            self._stream = _Stream(answer, self._transport, self._ended)

    def _answer(self, request: ReceivedRequest) -> Answer:
        try:
            return self._handler(request)
        except Exception as error:  # noqa: BLE001 (a defect must not take other clients' connections down)
            return _failed(request, error)

    def _wait(self, answer: Deferred, request: ReceivedRequest) -> None:
        """Send the answer when it comes, unless the client has gone by then."""

        def send(done: asyncio.Task[CompleteAnswer]) -> None:
            self._deferred = None
            if done.cancelled():
                return
            response = self._answer_of(done, request)
            if not self._transport.is_closing():
                self._send(response, request.warnings, head_only=request.method == "HEAD")
                self._advance()

        self._deferred = asyncio.get_running_loop().create_task(answer.work())
        self._deferred.add_done_callback(send)

    def _answer_of(self, done: asyncio.Task[CompleteAnswer], request: ReceivedRequest) -> CompleteAnswer:
        error = done.exception()
        return done.result() if error is None else _failed(request, error)

    def _request(self) -> ReceivedRequest:
        path, _, query = self._url.decode("latin-1").partition("?")
        if "%" in path:
            path = unquote(path)
        body = b"".join(self._body)
        method = self._parser.get_method().decode()
        return ReceivedRequest(method, path, _parse_query(query) if query else {}, self._headers, body)

    def _send(self, answer: CompleteAnswer, warnings: list[str], *, head_only: bool) -> None:
        length = sum(map(len, answer.parts))
        head = _head(answer, answer.status, b"Content-Length: %d\r\n" % length, warnings)
        if head_only or length <= _AT_ONCE:
            self._transport.write(head if head_only else b"".join([head, *answer.parts]))
            self._sent()
            return
        # A big list goes out as the client takes it, rather than as one more copy of itself.
        self._transport.write(head)
        self._outgoing = iter(answer.parts)
        self._feed()

    def _feed(self) -> None:
        assert self._outgoing is not None
        while not self._paused and not self._transport.is_closing():
            part = next(self._outgoing, None)
            if part is None:
                self._outgoing = None
                self._sent()
                self._advance()
                return
            self._transport.write(part)

    def _sent(self) -> None:
        if self._closing:
            self._transport.close()

    def _ended(self) -> None:
        self._stream = None
        self._sent()
        self._advance()


class _Stream:
    """A watch on its way to one client."""

    def __init__(self, events: EventStream, transport: asyncio.Transport, ended: Callable[[], None]) -> None:
        self.paused = False
        self._events = events
        self._transport = transport
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._closed = False
        self._deadline = self._loop.call_later(events.timeout_seconds, self._finish)
        self._heartbeat = self._loop.call_later(_BOOKMARK_SECONDS, self._mark)
        self._last_mark = self._loop.call_later(events.timeout_seconds - _BEFORE_END_SECONDS, self._mark_last)
        if events.timeout_seconds <= _BEFORE_END_SECONDS:
            self._last_mark.cancel()
        events.subscribe(self.wake)

    def wake(self) -> None:
        """Pull soon, once for all that happens until then."""
        if not self._scheduled and not self._closed:
            self._scheduled = True
            self._loop.call_soon(self._pull)

    def close(self) -> None:
        """Stop, without a word to the client."""
        if not self._closed:
            self._closed = True
            self._deadline.cancel()
            self._heartbeat.cancel()
            self._last_mark.cancel()
            self._events.close()

    def _pull(self) -> None:
        self._scheduled = False
        if self._closed or self.paused:
            return
        parts = self._events.pull()
        self._write(parts)
        if self._events.finished:
            self._finish()
        elif parts:
            # There may be more than one pull gives.
            self.wake()

    def _write(self, parts: list[bytes]) -> None:
        if parts:
            length = b"%x\r\n" % sum(map(len, parts))
            self._transport.write(b"".join([length, *parts, b"\r\n"]))

    def _mark(self) -> None:
        self._write(self._events.heartbeat())
        self._heartbeat = self._loop.call_later(_BOOKMARK_SECONDS, self._mark)

    def _mark_last(self) -> None:
        self._write(self._events.heartbeat())

    def _finish(self) -> None:
        if self._closed:
            return
        self.close()
        self._transport.write(_END)
        self._loop.call_soon(self._ended)


def _parse_query(query: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in query.split("&") if part)
    return {unquote_plus(key): unquote_plus(value) for key, _, value in pairs}
