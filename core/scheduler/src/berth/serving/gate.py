"""Which requests the secure port answers, and how many at once.

    request ──► access: always allowed, or reviewed ──► a place ──► body read ──► page ──► written in time
                     401, 403, 429                       429          408, 413     429, 503

What is asked about an object of an API group leaves a line in the log: who, what, and whether they may.

Health checks need no place: they read a few values, and nothing may keep a probe waiting.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from berth.aggregated_api.replicas import ASKED_BY, AUDIENCE, SENT_ON_BY
from berth.aggregated_api.request_info import ResourceAttributes, resource_of
from berth.aggregated_api.status import http_later, http_status
from berth.aggregated_api.users import USER
from berth.serving.access import Access, AccessReview, Clients, Review, by_no_certificate
from berth.serving.connections import ServedConnection
from berth.serving.errors import LoopBusyError, TooManyReviewsError
from berth.serving.request_bounds import (
    BODY_SECONDS,
    MAX_ANSWERED,
    MAX_ANSWERED_OF_USER,
    PIECE_BYTES,
    within_write_time,
)

log = logging.getLogger(__name__)

HEALTH = frozenset({"healthz", "livez", "readyz"})
RETRY_SECONDS = 1
API = "/apis/"
"""Under which users ask, and not probes and scrapers."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestGate:
    """Lets requests through to the paths that they may see, `MAX_ANSWERED` at once."""

    def __init__(
        self, review: Review, always_allowed: tuple[str, ...], clients: Clients = by_no_certificate
    ) -> None:
        self._review = review
        self._clients = clients
        self._exact = frozenset(path for path in always_allowed if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in always_allowed if path.endswith("*"))
        self._answering = 0
        self._of_user: Counter[str | None] = Counter()

    @property
    def pass_through(self) -> Any:
        """The middleware."""

        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = request.protocol
            assert isinstance(connection, ServedConnection), "accepted by berth.serving.connections"
            connection.began()
            try:
                return await self._answered(request, handler)
            finally:
                connection.ended()

        return middleware

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        USER.set("")
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        if request.path.removeprefix("/").partition("/")[0] in HEALTH:
            return await _page(request, handler)
        user = USER.get() if request.path.startswith(API) else None
        if user is not None and self._of_user[user] >= MAX_ANSWERED_OF_USER:
            # One that comes back at once would keep this thread busy.
            await asyncio.sleep(RETRY_SECONDS)
            return _later("too many requests of this user are being answered")
        if self._answering >= MAX_ANSWERED:
            return _later("too many requests are being answered")
        self._answering += 1
        self._of_user[user] += 1
        try:
            return await _written(request, await _with_body(request, handler))
        finally:
            self._answering -= 1
            self._of_user[user] -= 1
            if not self._of_user[user]:
                del self._of_user[user]

    async def _refusal(self, request: web.Request) -> web.Response | None:
        path, verb = request.path, request.method.lower()
        if path in self._exact or (self._prefixes and path.startswith(self._prefixes)):
            return None
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        asked = AccessReview(
            token.strip() if scheme.lower() == "bearer" else "",
            verb,
            path,
            self._clients(_certificate(request), request.headers),
            resource_of(request.method, path, watch="watch" in request.query),
            AUDIENCE if SENT_ON_BY in request.headers else "",
        )
        try:
            access = await self._review(asked)
        except TooManyReviewsError:
            return _later("too many unknown clients")
        if asked.resource is not None:
            _audit(asked.resource, access, request.remote or "")
        if access is None:
            return http_status(401, "Unauthorized", "Unauthorized")
        if access.allowed:
            by_replica = bool(asked.audience) and asked.user is None
            USER.set(unquote(request.headers.get(ASKED_BY, "")) if by_replica else access.user)
            return None
        if asked.resource is None:
            why = f'forbidden: User "{access.user}" cannot {verb} path "{path}"'
            return http_status(403, "Forbidden", why)
        return http_status(403, "Forbidden", asked.resource.refusal(access.user), asked.resource.details())


def _certificate(request: web.Request) -> bytes | None:
    """What the client showed, in DER, once TLS has verified it; None where it showed nothing."""
    link = None if request.transport is None else request.transport.get_extra_info("ssl_object")
    return None if link is None else link.getpeercert(binary_form=True)


def _audit(asked: ResourceAttributes, access: Access | None, client: str) -> None:
    log.info(
        "audit user=%s verb=%s resource=%s namespace=%s name=%s client=%s decision=%s",
        access.user if access else "",
        asked.verb,
        f"{asked.resource}.{asked.group}",
        asked.namespace,
        asked.name,
        client,
        "unauthenticated" if access is None else "allow" if access.allowed else "forbid",
    )


async def _with_body(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The page, once the request's body has been read: the page may be made in another thread."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            await request.read()
    except TimeoutError:
        return http_status(408, "Timeout", "the request's body did not come in time")
    except web.HTTPRequestEntityTooLarge:
        return http_status(413, "RequestEntityTooLarge", "the request's body is too large")
    return await _page(request, handler)


async def _page(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return web.Response(status=404, text="404 page not found\n")
    except LoopBusyError as error:
        return web.Response(status=503, text=f"{error}\n")
    except (web.HTTPException, ConnectionError):
        raise
    except Exception:
        log.exception("page not made path=%s", request.path)
        return web.Response(status=500, text="internal server error\n")


async def _written(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The response, once it has left; aiohttp itself would wait for a slow reader without end."""
    body = response.body if isinstance(response, web.Response) and request.method != "HEAD" else None
    if not isinstance(body, bytes) or len(body) <= PIECE_BYTES:
        return response
    written = web.StreamResponse(status=response.status, headers=response.headers)
    written.content_length = len(body)
    await within_write_time(request, _write_pieces(request, written, body))
    return written


async def _write_pieces(request: web.Request, response: web.StreamResponse, body: bytes) -> None:
    """Write piece by piece: TLS takes a body at once, however large, and its client would seem to be idle."""
    await response.prepare(request)
    for start in range(0, len(body), PIECE_BYTES):
        await response.write(body[start : start + PIECE_BYTES])
        # A fast reader never makes this wait: others get their turn, and a lost connection is noticed.
        await asyncio.sleep(0)
    await response.write_eof()


def _later(message: str) -> web.Response:
    return http_later(429, "TooManyRequests", message, RETRY_SECONDS)
