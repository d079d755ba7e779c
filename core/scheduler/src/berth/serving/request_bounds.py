"""What one client of the secure port may take: bytes, time and places, so that none keeps others out.

Source: staging/src/k8s.io/apiserver/pkg/server/secure_serving.go (Kubernetes v1.36), whose server has a
header and an idle timeout; the other bounds are our own (docs/decisions/0021-lease-and-health-thread.md).
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from aiohttp import web

MAX_CONNECTIONS = 128
"""Probes, scrapers and administrators need a dozen."""
MAX_ANSWERED = 16
"""Requests beside health checks that are answered at once; what each holds in memory is its answer."""
MAX_ANSWERED_OF_USER = 4
"""Of those, about objects of API groups for one user."""
HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 2.0
IDLE_SECONDS = 32.0
"""From a connection's start or its last answer to the end of the next request's head."""
BODY_SECONDS = 10.0
WRITE_SECONDS = 30.0
PIECE_BYTES = 1 << 16
MAX_BODY_BYTES = 1 << 20

# What aiohttp's own request handler holds each connection to.
REQUEST_HANDLING: dict[str, Any] = {
    "keepalive_timeout": IDLE_SECONDS,
    # A client may have sent a body that is not asked for: its answer should reach it before the end.
    "lingering_time": 1.0,
    "max_line_size": 8190,
    "max_field_size": 8190,
    "max_headers": 64,
    "auto_decompress": False,
    "access_log": None,
    # It writes a stack for each request that is not HTTP, which any client can send.
    "logger": logging.getLogger(f"{__name__}.quiet"),
}
REQUEST_HANDLING["logger"].setLevel(logging.CRITICAL)


async def within_write_time(request: web.Request, writing: Awaitable[Any]) -> None:
    """Write; a client that does not read what it asked for loses its connection.

    Raises: ConnectionResetError.
    """
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await writing
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client did not read its answer in time") from None
