"""One request on its way, and what is called with its answer: no task waits for it.

    held back by the rate limit ──► waiting for a credential ──► waiting for a connection ──► sent ──► ended
               └─────────────────────────────┴─────────────────────────────┴── not sent ───────────────┘

A convoy is several of them that leave in one write.

Called by: transport; who sends a request may give it up at any point.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any, NamedTuple, Protocol

from berth.client.connections.connection import Answer, Connection, Response
from berth.client.connections.pool import ConnectionPool
from berth.client.connections.request_counts import RequestCounts
from berth.client.endpoint import Authorization
from berth.client.errors import ClientError, CutError, HeldBackError, NotSentError
from berth.client.write_guard import WriteGuard
from berth.framework.pacing import TokenBucket

log = logging.getLogger(__name__)

UNAUTHORIZED = 401
SERVER_SIDE = 500
NO_CONNECTION = "no free connection before the deadline"
SAFE_METHODS = frozenset({"GET", "HEAD"})


class Lender(Protocol):
    """Where a connection came from."""

    def give_back(self, connection: Connection) -> None:
        """Take it back, closed or not."""


Outcome = Response | ClientError
OnOutcome = Callable[[Outcome], None]


class OutgoingRequest(NamedTuple):
    """What is to be sent, and the question to ask right before."""

    method: str
    target: str
    body: bytes
    content_type: str
    guard: WriteGuard | None


class Sender(Protocol):
    """What an exchange has of its transport."""

    pool: ConnectionPool
    counts: RequestCounts
    limiter: TokenBucket
    authorization: Authorization

    def encoded(self, request: OutgoingRequest, credential: str) -> bytes:
        """The request as it is sent."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it until the transport is closed."""


class Exchange:
    """A request with its deadline, and the callback that gets the answer, or the error in place of one.

    The callback is called once, maybe before `begin` returns, and in the context of who made the exchange:
    what it goes on to write is written by the same right.
    Units: deadline, a time of the event loop.
    """

    __slots__ = (
        "_connection",
        "_context",
        "_credential",
        "_lender",
        "_on_outcome",
        "_repeatable",
        "_request",
        "_sender",
        "_sent_at",
        "_timer",
        "_was_refused",
        "_write",
        "deadline",
        "ended",
    )

    def __init__(
        self, sender: Sender, request: OutgoingRequest, deadline: float, on_outcome: OnOutcome
    ) -> None:
        self.deadline = deadline
        self.ended = False
        self._sender = sender
        self._request = request
        self._on_outcome = on_outcome
        self._context = copy_context()
        self._credential = ""
        self._was_refused = False
        self._connection: Connection | None = None
        self._lender: Lender = sender.pool
        self._repeatable = False
        self._sent_at = 0.0
        self._write = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Send the request, now or once it may be sent."""
        limiter = self._sender.limiter
        if limiter.unlimited or (pause := limiter.reserve()) <= 0.0:
            self._authorize()
            return
        loop = asyncio.get_running_loop()
        if loop.time() + pause < self.deadline:
            self._timer = loop.call_later(pause, self._authorize)
        else:
            self._expire_with("held back by the client-side rate limit until the deadline")

    def give_up(self) -> None:
        """Make no callback; what was sent may yet take effect."""
        self.ended = True
        self._on_outcome = _ended
        self._stop_timer()
        if self._connection is not None:
            self._connection.give_up()
            self._took_back(certain=False)

    # What the pool calls.

    def take(self, connection: Connection) -> None:
        """Ask the guard, and leave on this connection in the same step."""
        self._stop_timer()
        request, sender = self._request, self._sender
        guard, deadline = request.guard, self.deadline
        self._sent_at = asyncio.get_running_loop().time()
        if guard is not None:
            if not self._context.run(guard):
                sender.pool.give_back(connection)
                self.end(HeldBackError("not sent: the right to write could not be proven"))
                return
            self._write = guard.sent()
            deadline = min(deadline, self._sent_at + guard.landing_seconds)
        # The server may have closed a kept connection while it was idle; only a read may be sent twice.
        self._repeatable = connection.kept and request.method in SAFE_METHODS
        self._connection, connection.kept = connection, True
        connection.send(sender.encoded(request, self._credential), deadline, self.answered)

    def refused(self, error: NotSentError) -> None:
        """End: the request was not sent."""
        self._sender.counts.failed(self._request.method)
        self.end(error)

    # What a convoy calls as well.

    def join(self, connection: Connection, credential: str, lender: Lender) -> bytes:
        """Leave on this connection, which is given back to the lender; gives the bytes."""
        assert self._request.guard is None, "what is guarded leaves in the step in which the guard is asked"
        self._connection, self._credential, self._lender = connection, credential, lender
        self._sent_at = asyncio.get_running_loop().time()
        return self._sender.encoded(self._request, credential)

    def answered(self, answer: Answer) -> None:
        """Go on with what came for the request."""
        counts, method = self._sender.counts, self._request.method
        seconds = asyncio.get_running_loop().time() - self._sent_at
        if isinstance(answer, Response):
            counts.answered(method, answer.status, seconds)
            self._took_back(certain=answer.status < SERVER_SIDE)
            if answer.status == UNAUTHORIZED and not self._was_refused:
                self._was_refused = True
                self._sender.spawn(self._renew(answer))
                return
        else:
            assert isinstance(answer, ClientError), "streams are no exchanges"
            counts.failed(method, seconds)
            self._took_back(certain=False)
            if self._repeatable and isinstance(answer, CutError):
                self._borrow()
                return
        self.end(answer)

    def end(self, outcome: Outcome) -> None:
        """Hand the outcome on, once."""
        if self.ended:
            return
        self.ended = True
        self._stop_timer()
        on_outcome, self._on_outcome = self._on_outcome, _ended
        try:
            self._context.run(on_outcome, outcome)
        except Exception:
            # Others wait for the connection that this came on.
            log.exception("outcome not taken target=%s", self._request.target)

    # From step to step.

    def _authorize(self) -> None:
        self._timer = None
        credential = self._sender.authorization.current()
        if credential is None:
            self._sender.spawn(self._refresh())
        else:
            self._credential = credential
            self._borrow()

    def _borrow(self) -> None:
        self._lender = self._sender.pool
        self._sender.pool.lend(self)
        if self._connection is None and not self.ended:
            self._expire_with(NO_CONNECTION)

    def _took_back(self, *, certain: bool) -> None:
        connection, self._connection = self._connection, None
        assert connection is not None, "it was sent on one"
        if self._request.guard is not None:
            self._request.guard.ended(self._write, certain=certain)
        self._lender.give_back(connection)

    async def _refresh(self) -> None:
        """Go on with a credential that has to be asked for first."""
        credential = await self._asked_for(rejected=False)
        if credential is not None and not self.ended:
            self._credential = credential
            self._borrow()

    async def _renew(self, refusal: Response) -> None:
        """Send it once more with another credential, if there is one: a 401 was not executed."""
        credential = await self._asked_for(rejected=True)
        if credential is None or self.ended:
            return
        # A client certificate is shown when a connection opens: start new ones.
        self._sender.pool.close_idle()
        if credential == self._credential:
            self.end(refusal)
        else:
            self._credential = credential
            self._borrow()

    async def _asked_for(self, *, rejected: bool) -> str | None:
        """A credential, asked for anew; None where there is none, which ends the exchange."""
        try:
            async with asyncio.timeout_at(self.deadline):
                return await self._sender.authorization.refresh(rejected=rejected)
        except TimeoutError:
            self.end(NotSentError("the credentials were not renewed before the deadline"))
        except ClientError as error:
            self.end(error)
        return None

    def _expire_with(self, problem: str) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self.deadline, lambda: self.end(NotSentError(problem)))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class PipelinedRequests:
    """Exchanges that leave in one write, and are answered one after the other on the same connection.

    None of them is guarded: the server begins with each when it has answered the one before, so that nothing
    bounds when a late one takes effect. Each has to bear being sent twice, since a cut leaves all in doubt.
    """

    __slots__ = ("_exchanges", "_left", "_sender", "_timer", "deadline", "ended")

    def __init__(self, sender: Sender, exchanges: Sequence[Exchange]) -> None:
        self.deadline = exchanges[0].deadline
        self.ended = False
        self._sender = sender
        self._exchanges = exchanges
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Send them; one alone, and all where a credential has to be asked for first, go by themselves."""
        alone = len(self._exchanges) == 1 or not self._sender.limiter.unlimited
        if alone or self._sender.authorization.current() is None:
            for exchange in self._exchanges:
                exchange.begin()
            return
        self._sender.pool.lend(self)
        if self._exchanges:
            self._timer = asyncio.get_running_loop().call_at(self.deadline, self._expire)

    def take(self, connection: Connection) -> None:
        """Leave on this connection."""
        if self._timer is not None:
            self._timer.cancel()
        credential = self._sender.authorization.current() or ""
        connection.kept = True
        exchanges, self._exchanges = self._exchanges, ()
        self._left = len(exchanges)
        data = b"".join(exchange.join(connection, credential, self) for exchange in exchanges)
        connection.send(data, self.deadline, *(exchange.answered for exchange in exchanges))

    def refused(self, error: NotSentError) -> None:
        """End all: they were not sent."""
        exchanges, self._exchanges, self.ended = self._exchanges, (), True
        for exchange in exchanges:
            exchange.end(error)

    def _expire(self) -> None:
        self.refused(NotSentError(NO_CONNECTION))

    def give_back(self, connection: Connection) -> None:
        """Take note that one is answered; after the last the connection is free for others."""
        self._left -= 1
        if not self._left:
            self._sender.pool.give_back(connection)


def _ended(outcome: Outcome) -> None:
    """The callback of an exchange that is over: the garbage collector need not look for what it held."""
    raise AssertionError(outcome)
