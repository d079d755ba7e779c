"""Failures as an API server has them: a Status, in words and as a document."""

from collections.abc import Mapping

import msgspec
from aiohttp import web


def http_status(
    code: int, reason: str, message: str, details: Mapping[str, object] | None = None
) -> web.Response:
    """A failure; `details` name the object that it is about."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": dict(details)} if details else {}),
        "code": code,
    }
    return web.Response(status=code, body=msgspec.json.encode(status), content_type="application/json")


def http_later(
    code: int, reason: str, message: str, retry_seconds: int, details: Mapping[str, object] | None = None
) -> web.Response:
    """A failure that may be another answer after so many seconds."""
    response = http_status(code, reason, message, {**(details or {}), "retryAfterSeconds": retry_seconds})
    response.headers["Retry-After"] = str(retry_seconds)
    return response
