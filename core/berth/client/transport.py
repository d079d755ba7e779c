"""A bounded pool of keep-alive connections to one API server.

Every request has a deadline that counts from the call, waiting for a connection included.
What was never written raises NotSentError; what was written and not answered raises an
AmbiguousError, so that callers never have to guess.

Called by: api (requests), watch (streams).
"""

import asyncio
import math
from typing import NamedTuple
from urllib.parse import urlencode
from weakref import WeakSet

from berth.client.connection import BodyStream, Connection, Response
from berth.client.endpoint import Endpoint
from berth.client.errors import CutError, HeldBackError, NotSentError
from berth.client.timing import TokenBucket
from berth.client.tunnel import open_connection
from berth.client.write_guard import WriteGuard
from berth.framework.clock import SystemClock

JSON = "application/json"
IDLE_SECONDS = 30.0
REQUEST_SECONDS = 30.0
UNAUTHORIZED = 401
SERVER_SIDE = 500
SAFE_METHODS = frozenset({"GET", "HEAD"})

Query = dict[str, str | int]


class Request(NamedTuple):
    """What is to be sent, and the question to ask right before."""

    method: str
    target: str
    body: bytes
    content_type: str
    guard: WriteGuard | None


class Transport:
    """Sends requests to one endpoint over at most `max_connections` at a time.

    Streams have connections of their own beyond that number, so that watches can't starve writes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        max_connections: int = 32,
        limiter: TokenBucket | None = None,
        user_agent: str = "berth",
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self.request_seconds = request_seconds
        """How long a request may take that names no time of its own."""
        self._endpoint = endpoint
        self._user_agent = user_agent
        self._limiter = limiter or TokenBucket(-1, 0, SystemClock())
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: list[Connection] = []
        self._open_ones: WeakSet[Connection] = WeakSet()
        self._shown_credential: str | None = None
        self._fixed_headers = ""
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
        guard: WriteGuard | None = None,
    ) -> Response:
        """Send a request and return the whole answer, whatever its status.

        `guard` is asked at the last moment before the bytes leave; if it says no, nothing is sent.
        What it lets pass, the server is asked to give up in time, and the answer is awaited no longer.
        A 401 makes the credentials refresh, and the request is sent once more: it was not executed.

        Raises: NotSentError, HeldBackError, CutError, DeadlineError.
        """
        deadline = self._deadline(timeout_seconds)
        if guard is not None and guard.landing_seconds < math.inf:
            query = {**(query or {}), "timeout": f"{guard.landing_seconds * 1000:.0f}ms"}
        request = Request(method, _target(path, query), body, content_type, guard)
        await self._admit(deadline)
        try:
            credential = await self._credential(deadline)
            response = await self._send(request, credential, deadline)
            if response.status == UNAUTHORIZED:
                renewed = await self._credential(deadline, rejected=True)
                if renewed != credential:
                    response = await self._send(request, renewed, deadline)
            return response
        finally:
            self._slots.release()

    async def stream(
        self, path: str, *, query: Query | None = None, timeout_seconds: float | None = None
    ) -> BodyStream:
        """Start a GET and return its body as a stream, as soon as the head of the answer is here.

        Raises: NotSentError, CutError, DeadlineError.
        """
        deadline = self._deadline(timeout_seconds)
        target = _target(path, query)
        await self._limit(deadline)
        credential = await self._credential(deadline)
        stream = await self._open_stream(target, credential, deadline)
        if stream.status == UNAUTHORIZED:
            renewed = await self._credential(deadline, rejected=True)
            if renewed != credential:
                stream.close()
                stream = await self._open_stream(target, renewed, deadline)
        return stream

    async def aclose(self) -> None:
        """Close every connection; requests under way end with CutError."""
        self._closed = True
        for connection in tuple(self._open_ones):
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # Lets the loop close the sockets before it is itself closed.

    def _deadline(self, seconds: float | None) -> float:
        return asyncio.get_running_loop().time() + (self.request_seconds if seconds is None else seconds)

    async def _admit(self, deadline: float) -> None:
        await self._limit(deadline)
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise NotSentError("no free connection before the deadline") from None

    async def _limit(self, deadline: float) -> None:
        if self._limiter.unlimited:
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._limiter.acquire()
        except TimeoutError:
            raise NotSentError("held back by the client-side rate limit until the deadline") from None

    async def _send(self, request: Request, credential: str, deadline: float) -> Response:
        data = self._encoded(request, credential)
        while True:
            kept = self._take_idle()
            connection = kept or await self._open(deadline)
            if request.guard is not None and not request.guard():
                self._give_back(connection)
                raise HeldBackError("not sent: the right to write could not be proven")
            try:
                response = await _answer(connection, data, deadline, request.guard)
            except CutError:
                # The server may have closed a kept connection while it was idle.
                if kept is None or request.method not in SAFE_METHODS:
                    raise
            else:
                self._give_back(connection)
                return response

    def _encoded(self, request: Request, credential: str) -> bytes:
        head = self._head(request.method, request.target, credential)
        if request.body or request.method not in SAFE_METHODS:
            length = len(request.body)
            head += f"Content-Type: {request.content_type}\r\nContent-Length: {length}\r\n"
        return f"{head}\r\n".encode("latin-1") + request.body

    async def _open_stream(self, target: str, credential: str, deadline: float) -> BodyStream:
        head = self._head("GET", target, credential)
        connection = await self._open(deadline)
        return await connection.stream(f"{head}\r\n".encode("latin-1"), deadline)

    def _head(self, method: str, target: str, credential: str) -> str:
        if credential != self._shown_credential:
            self._shown_credential = credential
            self._fixed_headers = self._headers(credential)
        return f"{method} {self._endpoint.prefix}{target} HTTP/1.1\r\n{self._fixed_headers}"

    def _headers(self, authorization: str) -> str:
        lines = [
            f"Host: {self._endpoint.address.authority}",
            f"User-Agent: {self._user_agent}",
            f"Accept: {JSON}",
        ]
        if authorization:
            lines.append(f"Authorization: {authorization}")
        return "".join(f"{line}\r\n" for line in lines)

    async def _credential(self, deadline: float, *, rejected: bool = False) -> str:
        value = self._endpoint.authorization.current()
        if value is not None and not rejected:
            return value
        try:
            async with asyncio.timeout_at(deadline):
                value = await self._endpoint.authorization.refresh(rejected=rejected)
        except TimeoutError:
            raise NotSentError("the credentials were not renewed before the deadline") from None
        if rejected:
            # A client certificate is shown when a connection opens: start new ones.
            while self._idle:
                self._idle.pop().abort()
        return value

    def _take_idle(self) -> Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def _give_back(self, connection: Connection) -> None:
        if connection.closed or self._closed:
            connection.abort()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)

    async def _open(self, deadline: float) -> Connection:
        if self._closed:
            raise NotSentError("the client is closed")
        try:
            async with asyncio.timeout_at(deadline):
                connection = await open_connection(self._endpoint)
        except TimeoutError:
            raise NotSentError(f"{self._endpoint.address.authority}: no connection in time") from None
        except OSError as error:
            raise NotSentError(f"{self._endpoint.address.authority}: {error}") from error
        self._open_ones.add(connection)
        return connection


async def _answer(connection: Connection, data: bytes, deadline: float, guard: WriteGuard | None) -> Response:
    if guard is None:
        return await connection.request(data, deadline)
    write, certain = guard.sent(), False
    try:
        by = asyncio.get_running_loop().time() + guard.landing_seconds
        response = await connection.request(data, min(deadline, by))
        certain = response.status < SERVER_SIDE
    finally:
        guard.ended(write, certain=certain)
    return response


def _target(path: str, query: Query | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path
