"""The live page on loopback, for a browser: what it gets is asked of a scheduler with its user's credentials.

A browser has no bearer token to send. `berth live` stands between it and the secure port:

    browser ──http, loopback──► PassingOn ──https, Authorization: Bearer──► secure port

Only GETs of the page and of explanations are passed on, and only those that name this address: a page of
another site whose name leads here is refused.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
from aiohttp import web

from berth.aggregated_api.kinds import ROOT as EXPLANATIONS
from berth.client.errors import ClientError
from berth.live_page.pages import HEADERS
from berth.live_page.paths import ROOT

LOOPBACK = "127.0.0.1"
TIMEOUT_SECONDS = 60.0
PASSED_ON = (ROOT, EXPLANATIONS)
ASKED = ("Accept", "If-None-Match")
ANSWERED = ("Content-Type", "ETag", "Retry-After")

Token = Callable[[], Awaitable[str]]
"""A bearer token of the user, "" for none; asked again where the last one was refused.

Raises: ClientError.
"""


class PassingOn:
    """Answers a browser with what the scheduler at `url` answers the user."""

    def __init__(self, client: aiohttp.ClientSession, url: str, tls: ssl.SSLContext, token: Token) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._tls = tls
        self._new_token = token
        self._token: str | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """The scheduler's answer; 502 where there is none."""
        if request.host not in _own_names(request):
            return web.Response(status=421, text=f"open http://{LOOPBACK}, and no other name\n")
        if request.path == "/":
            return web.Response(status=302, headers={"Location": ROOT})
        if not any(request.path == path or request.path.startswith(f"{path}/") for path in PASSED_ON):
            return web.Response(status=404, text="404 page not found\n")
        try:
            answer = await self._asked(request)
            if answer.status == HTTPStatus.UNAUTHORIZED:
                self._token = None
                answer = await self._asked(request)
        except ClientError as error:
            return web.Response(status=502, text=f"no token: {error}\n")
        except Exception as error:  # noqa: BLE001 - of the connection to the scheduler, whatever its type
            return web.Response(status=502, text=f"{self._url}: {str(error) or type(error).__name__}\n")
        return answer

    async def _asked(self, request: web.Request) -> web.Response:
        if self._token is None:
            self._token = await self._new_token()
        headers = {name: request.headers[name] for name in ASKED if name in request.headers}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        async with self._client.get(
            f"{self._url}{request.path}",
            params=request.query,
            headers=headers,
            ssl=self._tls,
            allow_redirects=False,
        ) as found:
            kept = {name: found.headers[name] for name in ANSWERED if name in found.headers}
            return web.Response(status=found.status, body=await found.read(), headers={**HEADERS, **kept})


def _own_names(request: web.Request) -> tuple[str, ...]:
    bound = request.transport.get_extra_info("sockname") if request.transport else None
    port = bound[1] if bound else 0
    return f"{LOOPBACK}:{port}", f"localhost:{port}"


@asynccontextmanager
async def passing_on(url: str, tls: ssl.SSLContext, token: Token, port: int = 0) -> AsyncIterator[str]:
    """Serve the page of the scheduler at `url` on loopback; gives the address to open.

    Raises: OSError where the port is taken.
    """
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as client:
        app = web.Application()
        app.router.add_get("/{path:.*}", PassingOn(client, url, tls, token).answer)
        runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, port)
            await site.start()
            yield f"http://{LOOPBACK}:{runner.addresses[0][1]}{ROOT}"
        finally:
            await runner.cleanup()


async def serve(url: str, tls: ssl.SSLContext, token: Token, port: int, say: Callable[[str], None]) -> None:
    """Serve the page until cancelled; `say` is given the address."""
    async with passing_on(url, tls, token, port) as address:
        say(address)
        await asyncio.Event().wait()
