"""The OpenAPI v2 document as protobuf, which is the one form that kubectl reads.

What a document made by openapi.py has is written; other fields of the format are not.

Source: gnostic-models openapiv2/OpenAPIv2.proto (v0.7.0); kube-openapi pkg/handler/handler.go (v1.36).
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from berth.sandbox.store import Json, encode

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED: Final = frozenset({MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})
"""What clients ask for: the second spelling, which is no valid media type, is that of all known kubectl."""

_NUMBERS_OF_VERBS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 7}
_LENGTH_DELIMITED: Final = 2
_VARINT_BITS: Final = 7


def write(document: Json) -> bytes:
    """Encode a document of OpenAPI v2."""
    info = document["info"]
    items = (_named(2, path, _path_item(item)) for path, item in document["paths"].items())
    return b"".join(
        (
            _text(1, document["swagger"]),
            _field(2, _text(1, info["title"]) + _text(2, info["version"])),
            _field(8, b"".join(items)),
            _field(9, _named_schemas(document["definitions"])),
        )
    )


def _path_item(item: Json) -> bytes:
    return b"".join(_field(_NUMBERS_OF_VERBS[verb], _operation(each)) for verb, each in item.items())


def _operation(operation: Json) -> bytes:
    parameters = (_field(8, _query_parameter(each)) for each in operation["parameters"])
    responses = (_named(1, code, _response(each)) for code, each in operation["responses"].items())
    return b"".join(
        chain(
            (_text(3, operation["description"]),),
            parameters,
            (_field(9, b"".join(responses)),),
            _extensions(13, operation),
        )
    )


def _query_parameter(parameter: Json) -> bytes:
    fields = ((2, "in"), (3, "description"), (4, "name"), (6, "type"))
    written = b"".join(_text(number, parameter[key]) for number, key in fields)
    # A ParametersItem's Parameter, its NonBodyParameter, and of that one in the query.
    return _field(1, _field(2, _field(3, written)))


def _response(response: Json) -> bytes:
    schema = _field(1, _schema(response["schema"]))
    return _field(1, _text(1, response["description"]) + _field(2, schema))


def _named_schemas(schemas: Json) -> bytes:
    return b"".join(_named(1, name, _schema(each)) for name, each in schemas.items())


def _schema(schema: Json) -> bytes:
    texts = ((1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern"))
    found = [_text(number, schema[key]) for number, key in texts if key in schema]
    if "default" in schema:
        found.append(_field(5, _any(schema["default"])))
    found += [_text(19, name) for name in schema.get("required", ())]
    found += [_field(20, _any(value)) for value in schema.get("enum", ())]
    further = schema.get("additionalProperties")
    if isinstance(further, dict):
        found.append(_field(21, _field(1, _schema(further))))
    if "type" in schema:
        found.append(_field(22, _text(1, schema["type"])))
    if "items" in schema:
        found.append(_field(23, _field(1, _schema(schema["items"]))))
    found += [_field(24, _schema(each)) for each in schema.get("allOf", ())]
    if "properties" in schema:
        found.append(_field(25, _named_schemas(schema["properties"])))
    return b"".join(chain(found, _extensions(31, schema)))


def _extensions(number: int, holder: Json) -> Iterable[bytes]:
    return (_named(number, key, _any(value)) for key, value in holder.items() if key.startswith("x-"))


def _any(value: Any) -> bytes:
    """Write a value as YAML, of which JSON is a part."""
    return _field(2, encode(value))


def _named(number: int, name: str, value: bytes) -> bytes:
    return _field(number, _text(1, name) + _field(2, value))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >> _VARINT_BITS:
        written.append(number & 127 | 128)
        number >>= _VARINT_BITS
    written.append(number)
    return bytes(written)
