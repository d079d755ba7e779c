"""The JSON envelopes of the API: decoded first, with the object inside kept as bytes."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from berth.client.connections.connection import Response
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
from berth.client.legible import UNREADABLE, legible, part, split, unfolded

MESSAGE_LIMIT = 512

T = TypeVar("T")


class ObjectKey(NamedTuple):
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
    details: Any = None


class _Shell(msgspec.Struct, frozen=True):
    """A page of which only the envelope was decoded, and what stands for its items."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


def bounded(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """The decoder, for whatever the API server sends: what it refuses it is given once more, made legible.

    Raises (the returned function): what the decoder raises.
    """

    def from_bytes(document: bytes) -> T:
        try:
            return decode(document)
        except Exception:
            text = legible(bytes(document))
            if text == document:
                raise
            return decode(text)

    return from_bytes


_decode_page = msgspec.json.Decoder(Page).decode
_decode_shell = msgspec.json.Decoder(_Shell).decode
_decode_watch_event = msgspec.json.Decoder(WatchEvent).decode
_decode_status = bounded(msgspec.json.Decoder(_Status).decode)
_encode = msgspec.json.Encoder().encode
_ITEMS_DEPTH, _OBJECT_DEPTH = 3, 2

decode_head = bounded(msgspec.json.Decoder(Head).decode)
decode_document: Callable[[bytes], dict[str, Any]] = bounded(msgspec.json.Decoder(dict[str, Any]).decode)


def decode_page(document: bytes) -> Page:
    """The page, each item as it was sent, whether a decoder reads it or not.

    Raises: msgspec.DecodeError where it is no list.
    """
    try:
        return _decode_page(document)
    except UNREADABLE:
        envelope, items = split(bytes(document), _ITEMS_DEPTH)
        shell = _decode_shell(envelope)
        return Page(shell.metadata, [part(each, items) for each in shell.items or ()])


def decode_watch_event(line: bytes) -> WatchEvent:
    """The event, with its object as it was sent, whether a decoder reads it or not.

    Raises: msgspec.DecodeError where it is no event.
    """
    try:
        return _decode_watch_event(line)
    except UNREADABLE:
        envelope, objects = split(bytes(line), _OBJECT_DEPTH)
        event = _decode_watch_event(envelope)
        return WatchEvent(event.type, part(event.object, objects))


def encode(document: Any) -> bytes:
    """The document as JSON, with what `bounded` left out of it."""
    return unfolded(_encode(document))


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
    except UNREADABLE:
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
    error = BY_STATUS.get(code, RejectedError)(code, reason, message)
    error.causes = _causes(status.details)
    return error


def _causes(details: Any) -> tuple[str, ...]:
    causes = details.get("causes") if isinstance(details, dict) else None
    found = causes if isinstance(causes, list) else []
    return tuple(str(one["message"]) for one in found if isinstance(one, dict) and "message" in one)
