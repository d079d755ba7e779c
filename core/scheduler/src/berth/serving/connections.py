"""The connections of the secure port: accepted here, so that their number is bounded from the first byte on.

    accepted ──► TLS handshake ──► waiting for a request ◄──► answering
        └───────────────┴───────────────┴── closed: late, gone, or the idlest beyond the bound

A new connection always gets in. Beyond the bound it takes the place of another: of the client address that
has the most connections, the one that has been idle longest. So clients that open many close their own, and
a probe, which is new and alone, stays.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

from berth.framework.clock import SYSTEM_CLOCK
from berth.serving.request_bounds import (
    GOODBYE_SECONDS,
    HANDSHAKE_SECONDS,
    MAX_CONNECTIONS,
    REQUEST_HANDLING,
)
from berth.serving.serving_certificate import Certificate

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""How long nothing is accepted after the system refused to (no file descriptors left)."""


class ServedConnection(web.RequestHandler):
    """aiohttp's handler of one connection, with what is needed to choose the idlest."""

    __slots__ = ("_on_lost", "answering", "idle_since", "link", "peer")

    def __init__(
        self, server: web.Server, peer: str, on_lost: Callable[["ServedConnection"], None], **settings: Any
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **settings)
        self.peer = peer
        self.answering = False
        self.idle_since = SYSTEM_CLOCK.monotonic()
        self.link: asyncio.Transport | None = None
        """The transport until it is really gone; aiohttp lets go of it when it begins to close it."""
        self._on_lost = on_lost

    def began(self) -> None:
        """A request is being answered."""
        self.answering = True

    def ended(self) -> None:
        """The request was answered."""
        self.answering = False
        self.idle_since = SYSTEM_CLOCK.monotonic()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for others."""
        self._on_lost(self)
        super().connection_lost(exc)


class Connections:
    """Accepts connections on a listening socket and hands them to an aiohttp server."""

    def __init__(
        self,
        server: web.Server,
        listener: socket.socket,
        certificate: Certificate,
        *,
        most: int = MAX_CONNECTIONS,
    ) -> None:
        self._server = server
        self._listener = listener
        self._certificate = certificate
        self._most = most
        self._open: dict[ServedConnection, socket.socket] = {}
        self._greetings: set[asyncio.Task[None]] = set()
        self._empty = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._refused = False
        """Whether the system gave no connection when it was asked last."""
        listener.setblocking(False)

    def __len__(self) -> int:
        return len(self._open)

    def begin(self) -> None:
        """Accept connections until `close`."""
        self._loop.add_reader(self._listener, self._accept)

    async def close(self) -> None:
        """Accept no more, and cut off what is open; to be called once the server has ended its requests."""
        self.stop_accepting()
        self._listener.close()
        for connection in tuple(self._open):
            self._cut(connection)
        # The sockets are closed in the loop's next rounds, which have to come before its end.
        while self._open:
            self._empty.clear()
            await self._empty.wait()

    def stop_accepting(self) -> None:
        """Leave further connections to wait in the listener's queue."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    def _accept(self) -> None:
        """Accept one connection: those that wait are accepted in the loop's next rounds, among all else."""
        try:
            accepted, address = self._listener.accept()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            if not self._refused:
                log.warning("connection not accepted, clients wait until there is one err=%s", error)
            self._refused = True
            self._close_idlest()
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(PAUSE_SECONDS, self.begin)
        else:
            if self._refused:
                log.info("connections are accepted again")
            self._refused = False
            accepted.setblocking(False)
            self._admit(accepted, address[0])

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        if len(self._open) >= self._most and not self._close_idlest():
            accepted.close()
            return
        connection = ServedConnection(self._server, peer, self.forget, **REQUEST_HANDLING)
        self._open[connection] = accepted
        greeting = self._loop.create_task(self._greet(connection, accepted))
        self._greetings.add(greeting)
        greeting.add_done_callback(self._greetings.discard)

    async def _greet(self, connection: ServedConnection, accepted: socket.socket) -> None:
        """Speak TLS; from then on the connection is the server's."""
        try:
            link, _ = await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._certificate(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
            connection.link = link
        except Exception:  # noqa: BLE001 - whatever TLS and loop end with, it is this connection's alone
            # Late, gone, or no TLS: anyone can do that, so it is not worth a line of the log.
            self.forget(connection)

    def forget(self, connection: ServedConnection) -> None:
        """Give the connection's place to others."""
        self._open.pop(connection, None)
        if not self._open:
            self._empty.set()

    def _cut(self, connection: ServedConnection) -> None:
        if connection.link is not None:
            connection.link.abort()
            return
        # A greeting that is cancelled in its first round leaves its socket open: asyncio closes a transport
        # only once the handshake has begun. At the end of its stream every greeting fails, and closes it.
        with suppress(OSError):
            self._open[connection].shutdown(socket.SHUT_RDWR)

    def _close_idlest(self) -> bool:
        """Close a connection on which nothing is being answered; False where there is none."""
        idle = [connection for connection in self._open if not connection.answering]
        if not idle:
            return False
        held = Counter(connection.peer for connection in self._open)
        idlest = min(idle, key=lambda connection: (-held[connection.peer], connection.idle_since))
        self._cut(idlest)
        # Its place is free at once, though it takes the loop a round to close the socket.
        self.forget(idlest)
        return True
