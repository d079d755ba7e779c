"""From the API server's JSON, or from a parsed document, to typed objects.

The hot path decodes bytes straight into structs. Documents written by people may hold nulls where the API
server writes nothing; those are dropped and the decoding is tried once more.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class UndecodableObjectError(ValueError):
    """Bytes that are not the object they should be; says which field and why."""


def decoder(kind: type[T], name: str = "") -> Callable[[bytes | msgspec.Raw], T]:
    """A function from JSON bytes to that kind, which errors call by that name.

    Raises (the returned function): UndecodableObjectError.
    """
    decode = msgspec.json.Decoder(kind).decode

    def from_bytes(data: bytes | msgspec.Raw) -> T:
        try:
            return decode(data)
        except msgspec.MsgspecError:
            return _leniently(data, kind, name)

    return from_bytes


def _leniently(data: bytes | msgspec.Raw, kind: type[T], name: str) -> T:
    try:
        return from_document(msgspec.json.decode(data), kind, name)
    except msgspec.MsgspecError as error:
        raise UndecodableObjectError(f"{name or kind.__name__}: {error}") from error


def from_document(document: Any, kind: type[T], name: str = "") -> T:
    """The typed object for a parsed JSON or YAML document; errors call it by that name.

    Raises: UndecodableObjectError.
    """
    try:
        return msgspec.convert(without_nulls(document), kind)
    except msgspec.MsgspecError as error:
        raise UndecodableObjectError(f"{name or kind.__name__}: {error}") from error


def without_nulls(document: Any) -> Any:
    """The document without keys whose value is null, at any depth."""
    if isinstance(document, dict):
        return {key: without_nulls(value) for key, value in document.items() if value is not None}
    if isinstance(document, list):
        return [without_nulls(item) for item in document]
    return document
