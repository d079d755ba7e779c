"""The HTTP client of one extender: its connections, its error texts, and the size limit of its replies.

Called by: http_extender.py, and the plugin http-extender, for schedulers that have no extenders.

Source: pkg/scheduler/extender.go send (Kubernetes v1.36).
"""

import asyncio
import io
from collections.abc import Mapping
from contextlib import suppress

import aiohttp
from yarl import URL

from berth.config.duration import Duration
from berth.config.types import ExtenderTls
from berth.out_of_tree.extender.errors import ExtenderError, ReplyError, StatusError, UnansweredError
from berth.out_of_tree.extender.failures import TIMED_OUT, go_error_text
from berth.out_of_tree.extender.tls import client_context
from berth.out_of_tree.limits import MESSAGE_BYTES

OK = 200
JSON = {"Content-Type": "application/json"}
REPLY_BYTES = MESSAGE_BYTES
"""What a reply may hold beside the nodes or pods that it was sent, which it may send back."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class ExtenderClient:
    """Calls the extender at a URL prefix; has to be created in the running event loop."""

    def __init__(self, url_prefix: str, timeout: Duration, tls: ExtenderTls | None) -> None:
        self.name = url_prefix
        self._base = url_prefix.rstrip("/")
        self._server_name = (tls.server_name if tls else "") or None
        self._under_way: set[asyncio.Task[object]] = set()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=client_context(tls)),
            timeout=aiohttp.ClientTimeout(total=timeout.seconds if timeout > 0 else None),
            trust_env=URL(self._base).host not in LOOPBACK,
        )

    def url(self, verb: str) -> str:
        """The URL of a verb."""
        return f"{self._base}/{verb.lstrip('/')}"

    async def ask(self, verb: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """The reply to an idempotent request, which is repeated where a kept connection was closed.

        Raises: UnansweredError, StatusError, ReplyError where the reply is larger than any answer to it.
        """
        return await self._sent(verb, body, headers, again=True)

    async def tell(self, verb: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """The reply to a request that must be sent only once.

        Raises: UnansweredError, StatusError, ReplyError where the reply is larger than any answer to it.
        """
        return await self._sent(verb, body, headers, again=False)

    async def drained(self) -> None:
        """Wait until all requests under way have ended."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def close(self) -> None:
        """Close the connections; requests under way fail."""
        await self._session.close()

    async def _sent(self, verb: str, body: bytes, headers: Mapping[str, str], *, again: bool) -> bytes:
        url = self.url(verb)
        task = asyncio.current_task()
        assert task is not None, "called from a coroutine"
        self._under_way.add(task)
        try:
            if again:
                with suppress(aiohttp.ServerDisconnectedError):
                    return await self._post(url, verb, body, headers)
            return await self._post(url, verb, body, headers)
        except TimeoutError:
            raise UnansweredError(f'Post "{url}": {TIMED_OUT}') from None
        except ExtenderError:
            raise
        except Exception as error:
            # Connections, TLS, proxies and encodings each raise exception types of their own library.
            raise UnansweredError(f'Post "{url}": {go_error_text(error)}') from error
        finally:
            self._under_way.discard(task)

    async def _post(self, url: str, verb: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        async with self._session.post(
            url, data=io.BytesIO(body), headers={**headers, **JSON}, server_hostname=self._server_name
        ) as response:
            if response.status != OK:
                text = f"failed {verb} with extender at URL {url}, code {response.status}"
                raise StatusError(text, response.status)
            return await self._read(response, verb, REPLY_BYTES + 2 * len(body))

    async def _read(self, response: aiohttp.ClientResponse, verb: str, most: int) -> bytes:
        """The body, unpacked."""
        data = bytearray()
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > most:
                raise ReplyError(f"extender: {self.name} answers {verb} with more than {most} bytes")
        return bytes(data)
