"""The JSON envelopes of the API: decoded first, with the object inside kept as bytes."""

import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from berth.client.connection import Response
from berth.client.errors import (
    ClientError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    RejectedError,
    RelistError,
    ServerError,
    ThrottledError,
    VersionTooLargeError,
)

MESSAGE_LIMIT = 512

T = TypeVar("T")


class Key(NamedTuple):
    """What names an object among those of its kind."""

    namespace: str
    name: str


class Meta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """The part of an object's metadata that says which object at which version it is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Head(msgspec.Struct, frozen=True, gc=False):
    """An object of which only the identity is read."""

    metadata: Meta = Meta()


class ListMeta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Where a list stands in the history, and where its next page starts."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, frozen=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch; the object stays undecoded."""

    type: str
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Status(msgspec.Struct, frozen=True):
    # Everything is Any: proxies and old servers put strings where objects belong.
    reason: Any = ""
    message: Any = ""
    code: Any = 0


# Strings as wholes, since brackets inside of them are none.
_STRINGS_AND_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_DEEPEST = 64
"""How deep documents are read that are nested deeper than the decoder goes."""
# Made anew by each process, so that no object can hold such a text of its own.
_FOLDED = secrets.token_hex(16).encode()
_FOLDED_TEXT = re.compile(rb'"' + _FOLDED + rb'([A-Za-z0-9+/=]*)"')


def folded(document: bytes) -> bytes:
    """The JSON document with a text for every list and map nested deeper than _DEEPEST.

    The API server keeps opaque values, such as the parameters of a claim's configuration, whatever their
    depth. The text holds what it stands for, and `encode` writes that again.
    Cost: linear in the length, without recursion.
    """
    kept, depth, start, begun = [], 0, 0, 0
    for token in _STRINGS_AND_BRACKETS.finditer(document):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth == _DEEPEST + 1:
                begun = token.start()
                kept.append(document[start:begun])
        elif token[0] in (b"]", b"}"):
            if depth == _DEEPEST + 1:
                kept.append(b'"%s%s"' % (_FOLDED, b64encode(document[begun : token.end()])))
                start = token.end()
            depth -= 1
    return b"".join((*kept, document[start:]))


def bounded(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """The decoder, for documents nested to any depth.

    Raises (the returned function): msgspec.DecodeError.
    """

    def from_bytes(document: bytes) -> T:
        try:
            return decode(document)
        except RecursionError:
            return decode(folded(bytes(document)))

    return from_bytes


decode_head = bounded(msgspec.json.Decoder(Head).decode)
decode_page = bounded(msgspec.json.Decoder(Page).decode)
decode_watch_event = bounded(msgspec.json.Decoder(WatchEvent).decode)
_decode_status = msgspec.json.Decoder(_Status).decode
_encode = msgspec.json.Encoder().encode


def encode(document: Any) -> bytes:
    """The document as JSON, with what `folded` left out of it."""
    text = _encode(document)
    return _FOLDED_TEXT.sub(lambda found: b64decode(found[1]), text) if _FOLDED in text else text


BY_STATUS: dict[int, type[NotFoundError | ConflictError | ExpiredError]] = {
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
}
BAD = 400
THROTTLED = 429
SERVER_SIDE = 500
GATEWAY_TIMEOUT = 504
TOO_LARGE = "Too large resource version"


def error_from(response: Response) -> ClientError:
    """The error that an answer with status 400 or more stands for."""
    return _error(response.status, response.body, response.retry_after_seconds)


def error_from_event(status_object: bytes) -> ClientError:
    """The error that the object of an ERROR event stands for; one without a code asks for a new list."""
    status = _read_status(status_object)
    if not isinstance(status.code, int) or status.code < BAD:
        return RelistError(0, str(status.reason), str(status.message))
    return _error(status.code, status_object, 0.0)


def _read_status(body: bytes) -> _Status:
    try:
        return _decode_status(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Status(message=bytes(body)[:MESSAGE_LIMIT].decode("utf-8", "replace").strip())


def _error(code: int, body: bytes, retry_after_seconds: float) -> ClientError:
    status = _read_status(body)
    reason, message = str(status.reason or ""), str(status.message or "")
    if code == THROTTLED:
        return ThrottledError(code, reason, message, retry_after_seconds)
    if code == GATEWAY_TIMEOUT and TOO_LARGE in message:
        return VersionTooLargeError(code, reason, message)
    if code >= SERVER_SIDE:
        return ServerError(code, reason, message)
    return BY_STATUS.get(code, RejectedError)(code, reason, message)
