"""Objects that a client sends as protobuf, read into the same documents as JSON.

Some kubectl verbs (`create namespace`, `create deployment`, `auth can-i` and others) and, unless configured
otherwise, kube-scheduler send protobuf and do not fall back to JSON. Answers are never protobuf: those
clients accept JSON too.

An autoscaler sends bare pods and nodes, without the envelope.
Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go (v1.36).
"""

import base64
import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from berth.sandbox import schemas
from berth.sandbox.bodies.protobuf_fields import FIELDS, NO_FIELDS
from berth.sandbox.store import Json

MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Empty messages that mean something; all others are Go structs that are not filled in.
_KEPT_EMPTY: Final = frozenset({"selector", "emptyDir", "podSelector", "namespaceSelector", "labelSelector"})
_SIGN: Final = 1 << 63
_LONGEST_SHIFT: Final = 63
_DEEPEST_EMPTY: Final = 100
"""As deep as protobuf libraries read messages; what is nested deeper counts as filled in."""


class ProtobufError(ValueError):
    """The body is malformed, or of a type that is not read."""


def read(body: bytes) -> Json:
    """Decode a body with its envelope.

    Raises: ProtobufError when it is malformed, or of a type that is not read.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("the body does not begin as Kubernetes protobuf does")
    try:
        envelope = dict(_fields(body[len(MAGIC) :]))
        types = {number: value.decode() for number, value in _fields(envelope[1])}
        name = _names()[types[1], types[2]]
        return {"apiVersion": types[1], "kind": types[2], **_message(envelope.get(2, b""), name)}
    except (KeyError, IndexError, AttributeError, UnicodeDecodeError, TypeError) as error:
        raise ProtobufError(f"not a type of object that is read as protobuf: {error!r}") from None


def read_bare(data: bytes, api_version: str, kind: str) -> Json:
    """Decode an object without an envelope; fields that are not read are left out.

    Raises: ProtobufError when it is malformed, or of a type that is not read.
    """
    try:
        name = _names()[api_version, kind]
        return {"apiVersion": api_version, "kind": kind, **_message(data, name, strict=False)}
    except (KeyError, IndexError, AttributeError, ValueError, TypeError, RecursionError) as error:
        raise ProtobufError(f"no {kind} as protobuf: {error!r}") from None


@cache
def _names() -> dict[tuple[str, str], str]:
    """Give the full type names that have field numbers, by apiVersion and kind."""
    found = {}
    for name in FIELDS:
        # One whose fields stand beside others as JSON has no schema of its own.
        for kind in schemas.definitions().get(name, {}).get("x-kubernetes-group-version-kind", ()):
            version = f"{kind['group']}/{kind['version']}" if kind["group"] else kind["version"]
            found[version, kind["kind"]] = name
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, value
        elif kind == _BYTES:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise ProtobufError("the body is cut off")
            yield tag >> 3, data[position : position + length]
            position += length
        elif kind in (_FIXED32, _FIXED64):
            position += 4 if kind == _FIXED32 else 8
        else:
            raise ProtobufError(f"wire type {kind} is not known")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        if shift > _LONGEST_SHIFT:
            raise ProtobufError("a number is longer than 64 bits")
        result |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 (the last byte of a varint)
            return result, position
        shift += 7


def _message(data: bytes, name: str, *, strict: bool = True) -> Json:
    result: Json = {}
    _fill(result, data, name, schemas.definitions()[name].get("properties", {}), strict=strict)
    return {key: value for key, value in result.items() if key in _KEPT_EMPTY or value not in ("", {})}


def _fill(result: Json, data: bytes, name: str, properties: Json, *, strict: bool) -> None:
    fields = FIELDS.get(name, NO_FIELDS)
    for number, raw in _fields(data):
        key = fields.names.get(number)
        if key is not None:
            if raw != 0 or key not in fields.unset:
                _put(result, key, raw, properties[key], strict=strict)
        elif number in fields.inline:
            _fill(result, raw, fields.inline[number], properties, strict=strict)
        elif strict and not _is_empty(raw):
            raise ProtobufError(f"field {number} of {name} is not read as protobuf")


def _is_empty(raw: Any, levels: int = _DEEPEST_EMPTY) -> bool:
    """Say whether a field holds nothing: zero, or a message of nothing but such fields."""
    if isinstance(raw, int):
        return raw == 0
    if not levels:
        return False
    try:
        return all(_is_empty(value, levels - 1) for _, value in _fields(raw))
    except (ProtobufError, IndexError):
        return False


def _put(result: Json, key: str, raw: Any, schema: Json, *, strict: bool) -> None:
    resolved = schemas.resolve(schema)
    kind = schemas.type_of(resolved)
    if kind == "array":
        result.setdefault(key, []).append(_value(raw, resolved["items"], strict=strict))
    elif kind == "object" and isinstance(resolved.get("additionalProperties"), dict):
        pair = dict(_fields(raw))
        value = _value(pair.get(2, b""), resolved["additionalProperties"], strict=strict)
        result.setdefault(key, {})[pair.get(1, b"").decode()] = value
    else:
        result[key] = _value(raw, schema, strict=strict)


def _value(raw: Any, schema: Json, *, strict: bool) -> Any:
    name = schemas.ref_name(schema) or ""
    if name in _OF_ITS_OWN_FORM:
        return _OF_ITS_OWN_FORM[name](dict(_fields(raw)))
    resolved = schemas.resolve(schema)
    kind = schemas.type_of(resolved)
    if kind == "object":
        return _message(raw, name, strict=strict)
    if kind == "array":
        return [item.decode() for _, item in _fields(raw)]
    if isinstance(raw, int):
        return bool(raw) if kind == "boolean" else _signed(raw)
    return base64.b64encode(raw).decode() if resolved.get("format") == "byte" else raw.decode()


def _quantity(parts: dict[int, Any]) -> str:
    return str(parts.get(1, b"0").decode())


def _int_or_string(parts: dict[int, Any]) -> int | str:
    return parts.get(3, b"").decode() if parts.get(1) else _signed(parts.get(2, 0))


def _time(parts: dict[int, Any], fraction: str = "") -> str:
    seconds = parts.get(1, 0)
    return time.strftime(f"%Y-%m-%dT%H:%M:%S{fraction}Z", time.gmtime(seconds)) if seconds else ""


def _micro_time(parts: dict[int, Any]) -> str:
    return _time(parts, f".{parts.get(2, 0) // 1000:06}")


def _fields_v1(parts: dict[int, Any]) -> Any:
    return json.loads(parts.get(1, b"{}"))


def _signed(value: int) -> int:
    return value - 2 * _SIGN if value & _SIGN else value


_OF_ITS_OWN_FORM: Final[dict[str, Callable[[dict[int, Any]], Any]]] = {
    schemas.QUANTITY: _quantity,
    schemas.INT_OR_STRING: _int_or_string,
    schemas.TIME: _time,
    schemas.MICRO_TIME: _micro_time,
    schemas.FIELDS_V1: _fields_v1,
}
