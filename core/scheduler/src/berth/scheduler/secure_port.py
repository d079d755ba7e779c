"""The secure port of a process: it listens from the start, and answers once what serves is imported.

    opened ──► everything listed, or some seconds gone ──► pages assembled and served ──► closed

The control thread serves it and times it, whatever keeps the scheduling loop.

Source: apiserver pkg/server/secure_serving.go; cmd/kube-scheduler/app/server.go (Kubernetes v1.36).
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from berth.aggregated_api.authentication_config import AuthenticationConfig
from berth.aggregated_api.users import User
from berth.client.api import Api
from berth.scheduler.loop.control_thread import ControlThread
from berth.scheduler.pages.status_pages import StatusPages
from berth.scheduler.process_options import Serving
from berth.serving.access import Review
from berth.serving.listening import listen
from berth.serving.serving_certificate import NamedCertificate, SelfMade

if TYPE_CHECKING:
    from berth.serving.endpoints import SecureServer

# A client that connects at the start is answered after so long, or once everything is listed where that is
# sooner: what serves takes half a second of imports, and lists and first decisions go before.
SERVE_WITHIN_SECONDS = 3.0
FIRST_DECISIONS_SECONDS = 0.1
TRUST_WITHIN_SECONDS = 3.0
"""How long the first answers wait for the authorities of client certificates."""


class SecurePort:
    """A port that listens, if anything is to be served; clients that connect wait for `serve`.

    Raises: StartError where address or certificate can't be used.
    """

    def __init__(
        self,
        serving: Serving,
        *,
        pages: StatusPages,
        review: Review,
        api: Api,
        control: ControlThread,
        synced: asyncio.Event,
    ) -> None:
        self._serving = serving
        self._pages = pages
        self._review = review
        self._control = control
        self._synced = synced
        self._api = api
        self._front_proxies: AuthenticationConfig | None = None
        self._following: asyncio.Task[None] | None = None
        self._listener = serving.listener or listen(serving.address, serving.port)
        self._certificate: NamedCertificate | SelfMade | None = (
            self._named_certificate() if self._listener is not None else None
        )
        self._server: SecureServer | None = None

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of what is served with, in hex; "" until that is known."""
        return "" if self._certificate is None else self._certificate.fingerprint

    async def serve(self) -> None:
        """Answer on the port, where there is one, until `close`."""
        if self._listener is not None:
            self._server = await self._control.run(self._start())

    async def _start(self) -> "SecureServer":
        with suppress(TimeoutError):
            async with asyncio.timeout(SERVE_WITHIN_SECONDS):
                while not self._synced.is_set():  # noqa: ASYNC110 - an event of the other thread's loop
                    await asyncio.sleep(FIRST_DECISIONS_SECONDS)
                await asyncio.sleep(FIRST_DECISIONS_SECONDS)
        # A worker thread imports and assembles the pages: meanwhile the lease is renewed.
        endpoints = await asyncio.to_thread(self._pages.endpoints)
        # Imported here: aiohttp takes 0.3 s of CPU, which the first lists need not wait for.
        from berth.serving.endpoints import SecureServer  # noqa: PLC0415 (see above)

        if self._certificate is None:
            self._certificate = await asyncio.to_thread(SelfMade, self._authorities)
        if self._serving.trusts_front_proxies:
            self._front_proxies = AuthenticationConfig(self._api)
            # A connection is known by what was trusted when it began, so the first ones have to wait for it.
            with suppress(TimeoutError):
                async with asyncio.timeout(TRUST_WITHIN_SECONDS):
                    await self._front_proxies.read()
            self._following = asyncio.create_task(self._front_proxies.follow(), name="front proxies")
        assert self._listener is not None, "there is something to be served"
        return await SecureServer.start(
            self._listener,
            self._certificate,
            endpoints,
            review=self._review,
            always_allowed=self._serving.always_allowed,
            clients=self._user,
        )

    def _authorities(self) -> str:
        return "" if self._front_proxies is None else self._front_proxies.trust.pem

    def _user(self, certificate: bytes | None, headers: Any) -> User | None:
        return None if self._front_proxies is None else self._front_proxies.trust.user(certificate, headers)

    def _named_certificate(self) -> NamedCertificate | None:
        """The certificate of the options; None for one to be made."""
        serving = self._serving
        if not (serving.certificate_file or serving.key_file):
            return None
        return NamedCertificate(serving.certificate_file, serving.key_file, self._authorities)

    async def close(self) -> None:
        """Answer no more, and listen no more."""
        if self._server is not None:
            await self._control.run(self._end(self._server))
        if self._listener is not None:
            self._listener.close()

    async def _end(self, server: "SecureServer") -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await server.close()
