"""The paths of the live page on the secure port, which has authorized each request before it comes here.

GET /live              the page; beside it its style, modules and icon, read from the package once
GET /live/state.json   what changes from second to second
GET /live/nodes.json   names and groups of the nodes

Every answer has an ETag. The state is collected once a second at most, however many ask; a request that
comes meanwhile waits for the one that is being made. A standby gets it from the leader (of_the_leader.py).
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files

import msgspec
from aiohttp import web

from berth.aggregated_api.replicas import SENT_ON_BY
from berth.framework.clock import Clock
from berth.live_page.collecting import Collected
from berth.live_page.paths import NODES, ROOT, STATE

EVERY_SECONDS = 1.0
JSON = "application/json"
MODULES = ("live.js", "charts.js", "elements.js", "layout.js", "nodes.js")
STATIC = (
    (ROOT, "live.html", "text/html; charset=utf-8"),
    (f"{ROOT}/live.css", "live.css", "text/css; charset=utf-8"),
    (f"{ROOT}/icon.svg", "icon.svg", "image/svg+xml"),
    *((f"{ROOT}/{module}", module, "text/javascript; charset=utf-8") for module in MODULES),
)
HEADERS = {
    # Nothing from other places and nothing inline: names in a cluster are chosen by its users.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

Page = Callable[[web.Request], Awaitable[web.Response]]
Collect = Callable[[], Awaitable[Collected]]


class CachedPage(msgspec.Struct, frozen=True):
    """A body, with the ETag that it has for as long as it stays the same."""

    body: bytes
    content_type: str
    tag: str

    @classmethod
    def of(cls, body: bytes, content_type: str) -> "CachedPage":
        """The body with its digest."""
        return cls(body, content_type, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')

    def answer(self, request: web.Request) -> web.Response:
        """The document, or 304 for a client that has it."""
        headers = {**HEADERS, "ETag": self.tag}
        if self.tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        return web.Response(body=self.body, headers={**headers, "Content-Type": self.content_type})


class Latest:
    """What `collect` gave last, asked for again once `EVERY_SECONDS` have gone."""

    def __init__(self, collect: Collect, clock: Clock) -> None:
        self._collect = collect
        self._clock = clock
        self._collecting: asyncio.Task[None] | None = None
        self._fresh_until = 0.0
        self.state = self.nodes = CachedPage.of(b"{}", JSON)

    async def refresh(self) -> None:
        """Collect, unless that was done within `EVERY_SECONDS`; what `collect` raises, all get that wait."""
        if self._clock.monotonic() < self._fresh_until:
            return
        if self._collecting is None or self._collecting.done():
            self._collecting = asyncio.create_task(self._make(), name="live page")
        # One viewer that goes away does not end it for the others.
        await asyncio.shield(self._collecting)

    async def _make(self) -> None:
        collected = await self._collect()
        self._fresh_until = self._clock.monotonic() + EVERY_SECONDS
        self.state = CachedPage.of(msgspec.json.encode(collected.state), JSON)
        nodes = f'"{collected.state.nodes}"'
        if nodes != self.nodes.tag:
            self.nodes = CachedPage(collected.nodes, JSON, nodes)


class LivePages:
    """Answers with what is collected `here` or, on a standby, with what is collected `of_leader`."""

    def __init__(
        self,
        here: Collect,
        clock: Clock,
        of_leader: Collect | None = None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._here = Latest(here, clock)
        self._of_leader = None if of_leader is None else Latest(of_leader, clock)
        self._leads = leads

    def pages(self) -> Mapping[str, Page]:
        """Each page by its path."""
        folder = files("berth.live_page") / "static"
        fixed = {
            path: _fixed(CachedPage.of((folder / file).read_bytes(), kind)) for path, file, kind in STATIC
        }
        return {**fixed, STATE: self._state_page, NODES: self._nodes_page}

    async def _state_page(self, request: web.Request) -> web.Response:
        return (await self._latest(request)).state.answer(request)

    async def _nodes_page(self, request: web.Request) -> web.Response:
        return (await self._latest(request)).nodes.answer(request)

    async def _latest(self, request: web.Request) -> Latest:
        latest = self._here
        if self._of_leader is not None and not self._leads() and SENT_ON_BY not in request.headers:
            latest = self._of_leader
        await latest.refresh()
        return latest


def _fixed(document: CachedPage) -> Page:
    async def answer(request: web.Request) -> web.Response:
        return document.answer(request)

    return answer
