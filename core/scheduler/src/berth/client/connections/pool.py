"""Keep-alive connections to one endpoint, lent to one request at a time.

    lend ──► an idle connection, or wait ──► one is given back, or one more is opened

Who waits is served in order. Nothing here waits itself: borrowers are called when their connection is there.

Called by: transport.
"""

import asyncio
import os
from collections import deque
from typing import Protocol
from weakref import WeakSet

from berth.client.connections.connection import Connection
from berth.client.connections.tunnel import open_connection
from berth.client.endpoint import Endpoint
from berth.client.errors import NotSentError

IDLE_SECONDS = 30.0
"""How long a connection stays unused: after a burst each would hold uvloop's buffer for TLS, 256 KiB."""
JUST_USED_SECONDS = 1.0
"""A connection that answered within this time is taken to be there still."""


class Borrower(Protocol):
    """What wants a connection, for as long as it is not `ended`."""

    deadline: float
    ended: bool

    def take(self, connection: Connection) -> None:
        """Use the connection, and give it back, closed or not; that may be before this returns."""

    def refused(self, error: NotSentError) -> None:
        """There is no connection to be had."""


class ConnectionPool:
    """At most `most` connections are lent or being opened at a time."""

    def __init__(self, endpoint: Endpoint, most: int) -> None:
        self._endpoint = endpoint
        self._most = most
        self._lent = 0
        self._idle: list[Connection] = []
        """Those given back last are last, and lent first."""
        self._look: asyncio.TimerHandle | None = None
        self._waiting: deque[Borrower] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._open_ones: WeakSet[Connection] = WeakSet()
        self._serving = False
        self._closed = False

    def lend(self, borrower: Borrower) -> None:
        """Give the borrower a connection, at once where one is idle and no other borrower waits."""
        connection = None if self._waiting else self._take_idle()
        if connection is not None:
            self._lent += 1
            borrower.take(connection)
        elif self._closed:
            borrower.refused(NotSentError("the client is closed"))
        else:
            self._waiting.append(borrower)
            self._serve()

    def give_back(self, connection: Connection) -> None:
        """Take a connection back, closed or not, and serve who waits."""
        self._lent -= 1
        if self._closed:
            connection.abort()
        elif not connection.closed:
            self._keep(connection)
        if self._waiting:
            self._serve()

    def close_idle(self) -> None:
        """Close the idle connections: others are opened in their place, with the credentials of then."""
        while self._idle:
            self._idle.pop().abort()
        self._look_no_more()

    def take_just_used(self) -> Connection | None:
        """An idle connection that has just answered, for a stream to keep: it saves a handshake of TLS.

        A scheduler that starts lists some twenty kinds, and then watches each of them.
        """
        since = asyncio.get_running_loop().time() - JUST_USED_SECONDS
        return self._take_idle() if self._idle and self._idle[-1].idle_since > since else None

    async def open(self, deadline: float) -> Connection:
        """A connection beyond those that are lent, for a stream. Raises: NotSentError."""
        if self._closed:
            raise NotSentError("the client is closed")
        authority = self._endpoint.address.authority
        try:
            async with asyncio.timeout_at(deadline):
                connection = await open_connection(self._endpoint)
        except TimeoutError:
            raise NotSentError(f"{authority}: no connection in time") from None
        except NotSentError:
            raise
        except Exception as error:
            # Resolver, TLS and event loop have types of their own; an error of one connection ends no other.
            raise NotSentError(f"{authority}: {_words(error)}") from error
        self._open_ones.add(connection)
        return connection

    async def aclose(self) -> None:
        """Close every connection; requests under way end with CutError, those that wait were not sent."""
        self._closed = True
        for opening in self._opening:
            opening.cancel()
        for connection in tuple(self._open_ones):
            connection.abort()
        self._idle.clear()
        self._look_no_more()
        while self._waiting:
            self._waiting.popleft().refused(NotSentError("the client is closed"))
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.sleep(0)  # Lets the loop close the sockets before it is itself closed.

    def _serve(self) -> None:
        """Lend what is idle to who waits, and open as many more as they need and the bound allows."""
        if self._serving:
            return  # A borrower gave its connection back at once: the loop below goes on with it.
        self._serving = True
        try:
            self._forget_ended()
            while self._waiting and (connection := self._take_idle()) is not None:
                self._lent += 1
                self._waiting.popleft().take(connection)
                self._forget_ended()
        finally:
            self._serving = False
        self._open_more()

    def _forget_ended(self) -> None:
        """Make sure that the first in the queue still waits."""
        while self._waiting and self._waiting[0].ended:
            self._waiting.popleft()

    def _open_more(self) -> None:
        """Open a connection for each that waits, beyond those that are being opened, as the bound allows."""
        while len(self._opening) < min(len(self._waiting), self._most - self._lent):
            self._opening.add(asyncio.create_task(self._open_one(self._waiting[-1].deadline)))

    async def _open_one(self, deadline: float) -> None:
        """Open a connection; who has waited longest gets it, or the reason why there is none."""
        opening = asyncio.current_task()
        assert opening is not None, "run as a task"
        error = None
        try:
            self._keep(await self.open(deadline))
        except NotSentError as caught:
            error = caught
        finally:
            self._opening.discard(opening)
        self._forget_ended()
        if error is not None and self._waiting:
            self._waiting.popleft().refused(error)
        self._serve()

    def _keep(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._look is None:
            self._look = loop.call_later(IDLE_SECONDS, self._close_unused)

    def _close_unused(self) -> None:
        """Close what was not needed for so long, and look again when the next one may be due."""
        loop = asyncio.get_running_loop()
        since = loop.time() - IDLE_SECONDS
        used = next((i for i, each in enumerate(self._idle) if each.idle_since > since), len(self._idle))
        for connection in self._idle[:used]:
            connection.abort()
        del self._idle[:used]
        self._look = None
        if self._idle:
            self._look = loop.call_at(self._idle[0].idle_since + IDLE_SECONDS, self._close_unused)

    def _look_no_more(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _take_idle(self) -> Connection | None:
        # A process that stood still may be asked before it looks.
        since = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and connection.idle_since > since:
                return connection
            connection.abort()
        return None


def _words(error: Exception) -> str:
    """As the system says it: asyncio repeats the address in its own words."""
    if isinstance(error, ConnectionError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
