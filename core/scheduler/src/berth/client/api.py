"""The verbs of the API on raw bytes, with errors from errors.py and retries where they are safe.

What is done for every pod is sent with a callback; coroutines, for the rare calls, wait for the same.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

import msgspec

from berth.client.connections.connection import Response
from berth.client.connections.exchange import SAFE_METHODS, Exchange, OnOutcome, Outcome
from berth.client.errors import ClientError, HeldBackError, NotSentError, RetryError, ThrottledError
from berth.client.resources import Resource
from berth.client.timing import After, after
from berth.client.transport import JSON, Query, Transport, settle
from berth.client.wire import error_from
from berth.client.write_guard import WriteGuard
from berth.framework.pacing import Backoff

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

BAD = 400
TRIES = 5


class Retry(msgspec.Struct, frozen=True):
    """How often to try, how long to pause, and which errors are worth it."""

    tries: int
    backoff: Backoff
    worth: Callable[[ClientError], bool]


def never_landed(error: ClientError) -> bool:
    """Whether the request certainly had no effect, so that even a create may be repeated."""
    return isinstance(error, NotSentError | ThrottledError) and not isinstance(error, HeldBackError)


def may_pass(error: ClientError) -> bool:
    """Whether a read may succeed when tried again."""
    return isinstance(error, RetryError)


_BACKOFF = Backoff(0.05, factor=3.0, jitter=0.5)
READ = Retry(TRIES, _BACKOFF, may_pass)
WRITE = Retry(TRIES, _BACKOFF, never_landed)


Done = Callable[[bytes | ClientError], object]
Begin = Callable[[float, OnOutcome], Exchange]


class RetryPauses(NamedTuple):
    """How pauses between tries pass, and the chance that lengthens them."""

    after: After
    rng: Random


class RetriedCall:
    """One call with its tries: `done` gets the body of a good answer, or the error of the last try.

    All tries together have until `deadline`, a time of the event loop.
    """

    __slots__ = (
        "_after",
        "_begin",
        "_deadline",
        "_done",
        "_exchange",
        "_failures",
        "_retry",
        "_rng",
        "_timer",
    )

    def __init__(self, begin: Begin, deadline: float, retry: Retry, pauses: RetryPauses, done: Done) -> None:
        self._begin = begin
        self._deadline = deadline
        self._retry = retry
        self._after, self._rng = pauses
        self._done = done
        self._failures = 0
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Try, for the first time or again."""
        self._timer = None
        self._exchange = self._begin(self._deadline - asyncio.get_running_loop().time(), self._tried)

    def give_up(self) -> None:
        """Make no callback; what was sent may have taken effect."""
        if self._timer is not None:
            self._timer.cancel()
        if self._exchange is not None:
            self._exchange.give_up()

    def _tried(self, outcome: Outcome) -> None:
        self._exchange = None
        if isinstance(outcome, Response):
            if outcome.status < BAD:
                self._done(outcome.body)
                return
            outcome = error_from(outcome)
        self._failures += 1
        asked = outcome.retry_after_seconds if isinstance(outcome, ThrottledError) else 0.0
        pause = max(self._retry.backoff.pause(self._failures, self._rng), asked)
        late = asyncio.get_running_loop().time() + pause >= self._deadline
        if late or self._failures == self._retry.tries or not self._retry.worth(outcome):
            self._done(outcome)
        else:
            self._timer = self._after(pause, self.begin)


class Api:
    """The API server's generic verbs; every body and every answer is bytes.

    All methods raise ClientError's subclasses: see errors.py for what to do about each.
    """

    def __init__(self, transport: Transport, *, after: After = after, rng: Random | None = None) -> None:
        self.transport = transport
        self._pauses = RetryPauses(after, rng or Random())

    def send(
        self,
        method: str,
        path: str,
        body: bytes,
        done: Done,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
        guard: WriteGuard | None = None,
        retry: Retry | None = None,
    ) -> RetriedCall:
        """Send a request, and call `done` with the body of a good answer, or with the error.

        Without `retry`, reads are repeated on anything that may pass, writes only when they
        certainly did not land. All tries together have `timeout_seconds`, or the transport's own time.
        `content_type` is that of the body; a request that only reads accepts it instead.
        `done` is called once, maybe before this returns, and in the context of the caller.
        """
        seconds = self.transport.request_seconds if timeout_seconds is None else timeout_seconds

        def begin(left_seconds: float, tried: OnOutcome) -> Exchange:
            return self.transport.send(
                method,
                path,
                body,
                tried,
                query=query,
                content_type=content_type,
                timeout_seconds=left_seconds,
                guard=guard,
            )

        retry = retry or (READ if method in SAFE_METHODS else WRITE)
        call = RetriedCall(begin, asyncio.get_running_loop().time() + seconds, retry, self._pauses, done)
        call.begin()
        return call

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
        guard: WriteGuard | None = None,
        retry: Retry | None = None,
    ) -> bytes:
        """Send a request as `send` does and return the body of a good answer."""
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        call = self.send(
            method,
            path,
            body,
            partial(settle, waiter),
            query=query,
            content_type=content_type,
            timeout_seconds=timeout_seconds,
            guard=guard,
            retry=retry,
        )
        try:
            return await waiter
        except asyncio.CancelledError:
            call.give_up()
            raise

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """One object."""
        return await self.call("GET", resource.path(namespace, name))

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create an object; returns it as stored."""
        return await self.call("POST", resource.collection(namespace), body)

    async def update(
        self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = ""
    ) -> bytes:
        """Replace an object; with its resourceVersion in the body, only if it was not written since."""
        return await self.call("PUT", resource.path(namespace, name, subresource), body)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> bytes:
        """Change parts of an object."""
        path = resource.path(namespace, name, subresource)
        return await self.call("PATCH", path, body, content_type=content_type)

    async def apply(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, owner: str, force: bool = False
    ) -> bytes:
        """Server-side apply in the name of a field owner; `force` takes fields from other owners."""
        query: Query = {"fieldManager": owner, "force": "true" if force else "false"}
        path = resource.path(namespace, name)
        return await self.call("PATCH", path, body, query=query, content_type=APPLY_PATCH)

    async def delete(self, resource: Resource, namespace: str, name: str, body: bytes = b"") -> bytes:
        """Delete an object; the body may hold DeleteOptions."""
        return await self.call("DELETE", resource.path(namespace, name), body)
