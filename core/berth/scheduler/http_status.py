"""What the secure port answers where it has nothing better to say: a Status, as an API server has it."""

import msgspec
from aiohttp import web


def http_status(code: int, reason: str, message: str) -> web.Response:
    """A failure in words and as a document."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return web.Response(status=code, body=msgspec.json.encode(status), content_type="application/json")
