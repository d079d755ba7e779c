"""What people and Prometheus read of a plugin over HTTP: GET /metrics, and GET /state."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping

from berth_sdk.errors import AddressError

log = logging.getLogger(__name__)

Page = tuple[str, Callable[[], str]]
"""A content type, and what makes the text."""
METRICS = "text/plain; version=0.0.4; charset=utf-8"
STATE = "application/json"
SECONDS_TO_ASK = 5.0


class Pages:
    """Pages by path, served until `close`."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def serve(self, address: str) -> int:
        """Listen at host:port; the port that it is.

        Raises: AddressError: that can't be had.
        """
        host, _, port = address.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._answer, host.strip("[]") or None, int(port))
        except (OSError, ValueError, OverflowError) as error:
            raise AddressError(f"metrics: {address}: {error}") from error
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(SECONDS_TO_ASK):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head.split(b"\r\n", 1)[0].decode("latin-1")))
                await writer.drain()
        writer.close()

    def _response(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method != "GET" or path not in self._pages:
            return _http("404 Not Found", "text/plain", "GET /metrics or /state\n")
        kind, make = self._pages[path]
        try:
            return _http("200 OK", kind, make())
        except Exception as error:
            log.exception("page failed path=%s", path)
            return _http("500 Internal Server Error", "text/plain", f"{type(error).__name__}: {error}\n")


def as_json(value: object) -> str:
    """Return a value as JSON people can read; what JSON has no form for as its text."""
    return json.dumps(value, indent=2, default=str) + "\n"


def _http(status: str, kind: str, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body
