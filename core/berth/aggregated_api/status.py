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
