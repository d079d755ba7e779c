"""Requests to one API server, over a bounded pool of keep-alive connections.

Every request has a deadline that counts from the call, waiting for a connection included.
What was never written ends with NotSentError; what was written and not answered, with an
AmbiguousError, so that callers never have to guess.

Called by: api (requests), watch (streams).
"""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from berth.client.connections.connection import BodyStream, Connection, Response
from berth.client.connections.exchange import (
    SAFE_METHODS,
    UNAUTHORIZED,
    Exchange,
    OnOutcome,
    OutgoingRequest,
    PipelinedRequests,
)
from berth.client.connections.pool import ConnectionPool
from berth.client.connections.request_counts import RequestCounts
from berth.client.endpoint import Endpoint
from berth.client.errors import ClientError, CutError, NotSentError
from berth.client.write_guard import WriteGuard
from berth.framework.clock import SystemClock
from berth.framework.pacing import TokenBucket

JSON = "application/json"
ACCEPT_JSON = f"Accept: {JSON}\r\n"
REQUEST_SECONDS = 30.0

Query = dict[str, str | int]


class Post(NamedTuple):
    """One of several writes that are sent together."""

    method: str
    path: str
    body: bytes
    content_type: str
    on_outcome: OnOutcome


class Transport:
    """Sends requests to one endpoint over at most `max_connections` at a time.

    Streams have connections of their own beyond that number, so that watches can't starve writes. One that
    has just answered a list goes on as its watch's.
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
        self.pool = ConnectionPool(endpoint, max_connections)
        self.counts = RequestCounts()
        self.limiter = limiter or TokenBucket(-1, 0, SystemClock().monotonic)
        self.authorization = endpoint.authorization
        self.host = endpoint.address.authority
        """The server's, as metrics and the Host header name it."""
        self._endpoint = endpoint
        self._user_agent = user_agent
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown_credential: str | None = None
        self._fixed_headers = ""

    def send(
        self,
        method: str,
        path: str,
        body: bytes,
        on_outcome: OnOutcome,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
        guard: WriteGuard | None = None,
    ) -> Exchange:
        """Send a request, and call `on_outcome` with the whole answer, whatever its status, or the error.

        `content_type` is that of the body; a request that only reads accepts it instead.
        `guard` is asked at the last moment before the bytes leave; if it says no, nothing is sent.
        What it lets pass, the server is asked to give up in time, and the answer is awaited no longer.
        A 401 makes the credentials refresh, and the request is sent once more: it was not executed.

        Errors: NotSentError, HeldBackError, CutError, DeadlineError.
        """
        if guard is not None and guard.landing_seconds < math.inf:
            query = {**(query or {}), "timeout": f"{guard.landing_seconds * 1000:.0f}ms"}
        request = OutgoingRequest(method, _target(path, query), body, content_type, guard)
        exchange = Exchange(self, request, self._deadline(timeout_seconds), on_outcome)
        exchange.begin()
        return exchange

    def send_together(self, posts: Sequence[Post], *, timeout_seconds: float | None = None) -> None:
        """Send writes that bear being repeated in one go, as one write of one connection.

        The server answers in their order, and a cut leaves all in doubt that are not answered yet. No guard
        is asked: a write that waits for others on the way keeps to no bound.
        """
        deadline = self._deadline(timeout_seconds)
        PipelinedRequests(
            self,
            [
                Exchange(self, OutgoingRequest(method, path, body, content_type, None), deadline, on_outcome)
                for method, path, body, content_type, on_outcome in posts
            ],
        ).begin()

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
        """Send a request and return the whole answer, for who has to wait for it.

        Raises: the errors of `send`.
        """
        waiter: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        exchange = self.send(
            method,
            path,
            body,
            partial(settle, waiter),
            query=query,
            content_type=content_type,
            timeout_seconds=timeout_seconds,
            guard=guard,
        )
        try:
            return await waiter
        except asyncio.CancelledError:
            exchange.give_up()
            raise

    async def stream(
        self, path: str, *, query: Query | None = None, timeout_seconds: float | None = None
    ) -> BodyStream:
        """Start a GET and return its body as a stream, as soon as the head of the answer is here.

        Raises: NotSentError, CutError, DeadlineError.
        """
        deadline = self._deadline(timeout_seconds)
        target = _target(path, query)
        await self._limit(deadline)
        credential = self.authorization.current()
        if credential is None:
            credential = await self._renewed(deadline, rejected=False)
        stream = await self._open_stream(target, credential, deadline)
        if stream.status == UNAUTHORIZED:
            renewed = await self._renewed(deadline, rejected=True)
            self.pool.close_idle()
            if renewed != credential:
                stream.close()
                stream = await self._open_stream(target, renewed, deadline)
        return stream

    async def aclose(self) -> None:
        """Close every connection; requests under way end with CutError."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.pool.aclose()

    def encoded(self, request: OutgoingRequest, credential: str) -> bytes:
        """The request as it is sent."""
        head = self._head(request.method, request.target, credential)
        if request.body or request.method not in SAFE_METHODS:
            length = len(request.body)
            head += f"{ACCEPT_JSON}Content-Type: {request.content_type}\r\nContent-Length: {length}\r\n"
        else:
            head += f"Accept: {request.content_type}\r\n"
        return f"{head}\r\n".encode("latin-1") + request.body

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it until the transport is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _deadline(self, seconds: float | None) -> float:
        return asyncio.get_running_loop().time() + (self.request_seconds if seconds is None else seconds)

    def _head(self, method: str, target: str, credential: str) -> str:
        if credential != self._shown_credential:
            self._shown_credential = credential
            self._fixed_headers = self._headers(credential)
        return f"{method} {self._endpoint.prefix}{target} HTTP/1.1\r\n{self._fixed_headers}"

    def _headers(self, authorization: str) -> str:
        lines = [
            f"Host: {self.host}",
            f"User-Agent: {self._user_agent}",
        ]
        if authorization:
            lines.append(f"Authorization: {authorization}")
        return "".join(f"{line}\r\n" for line in lines)

    # Streams.

    async def _limit(self, deadline: float) -> None:
        pause = self.limiter.reserve()
        left = deadline - asyncio.get_running_loop().time()
        if pause > 0.0:
            await asyncio.sleep(min(pause, left))
        if pause >= left:
            raise NotSentError("held back by the client-side rate limit until the deadline")

    async def _renewed(self, deadline: float, *, rejected: bool) -> str:
        try:
            async with asyncio.timeout_at(deadline):
                return await self.authorization.refresh(rejected=rejected)
        except TimeoutError:
            raise NotSentError("the credentials were not renewed before the deadline") from None

    async def _open_stream(self, target: str, credential: str, deadline: float) -> BodyStream:
        head = self._head("GET", target, credential)
        began = asyncio.get_running_loop().time()
        try:
            stream = await self._opened(head, deadline)
        except ClientError:
            self.counts.failed("GET", asyncio.get_running_loop().time() - began)
            raise
        self.counts.answered("GET", stream.status, asyncio.get_running_loop().time() - began)
        return stream

    async def _opened(self, head: str, deadline: float) -> BodyStream:
        kept = self.pool.take_just_used()
        if kept is not None:
            with suppress(CutError):  # The server closed it meanwhile.
                return await self._answered(kept, head, deadline)
        return await self._answered(await self.pool.open(deadline), head, deadline)

    async def _answered(self, connection: Connection, head: str, deadline: float) -> BodyStream:
        waiter: asyncio.Future[BodyStream] = asyncio.get_running_loop().create_future()
        data = f"{head}{ACCEPT_JSON}\r\n".encode("latin-1")
        connection.send(data, deadline, partial(settle, waiter), stream=True)
        try:
            return await waiter
        except asyncio.CancelledError:
            connection.give_up()
            raise


def settle(waiter: "asyncio.Future[Any]", outcome: object) -> None:
    """Give the outcome, a result or an error, to who waits for it, if that still does."""
    if waiter.done():
        return
    if isinstance(outcome, ClientError):
        waiter.set_exception(outcome)
    else:
        waiter.set_result(outcome)


def _target(path: str, query: Query | None) -> str:
    return f"{path}?{_written(tuple(query.items()))}" if query else path


@lru_cache(maxsize=256)
def _written(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)
