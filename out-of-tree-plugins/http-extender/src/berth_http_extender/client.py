"""One extender, asked over HTTP on connections that are kept."""

import asyncio
from urllib.parse import urlsplit

import aiohttp
from opentelemetry.propagate import inject

from berth_http_extender.settings import Settings
from berth_http_extender.wire import ExtenderError

OK = 200
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Client:
    """A profile's extender; has to be made on the running event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._under_way: set[asyncio.Task[object]] = set()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=settings.trust.context or True),
            timeout=aiohttp.ClientTimeout(total=settings.seconds),
            trust_env=urlsplit(settings.base).hostname not in LOOPBACK,
        )

    async def ask(self, verb: str, body: bytes) -> bytes:
        """Return the reply; a question may be put twice, if a kept connection turns out to be closed.

        Raises: ExtenderError.
        """
        try:
            return await self.tell(verb, body)
        except ExtenderError as error:
            if not isinstance(error.__cause__, aiohttp.ServerDisconnectedError):
                raise
        return await self.tell(verb, body)

    async def tell(self, verb: str, body: bytes) -> bytes:
        """Return the reply to what must be said once only; who is cancelled waits no longer.

        Raises: ExtenderError.
        """
        url = f"{self.settings.base}/{verb.lstrip('/')}"
        task = asyncio.current_task()
        assert task is not None, "called from a coroutine"
        self._under_way.add(task)
        try:
            return await self._post(url, verb, body)
        except TimeoutError as error:
            raise ExtenderError(f'Post "{url}": no answer within {self.settings.seconds:g}s') from error
        except (aiohttp.ClientError, ValueError) as error:
            raise ExtenderError(f'Post "{url}": {error or type(error).__name__}') from error
        finally:
            self._under_way.discard(task)

    async def _post(self, url: str, verb: str, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        inject(headers)
        name = self.settings.trust.server_name
        async with self._session.post(url, data=body, headers=headers, server_hostname=name) as response:
            if response.status != OK:
                raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
            return await response.read()

    async def close(self) -> None:
        """Close the connections, once what is under way has ended."""
        if self._under_way:
            await asyncio.wait(self._under_way)
        await self._session.close()
