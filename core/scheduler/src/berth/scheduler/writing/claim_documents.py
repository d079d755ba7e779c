"""A claim as it can be written back: with its opaque values byte for byte.

The API server keeps opaque parameters as the bytes that a user sent, and compares these with those of an
update. It encodes them anew when it answers in JSON or applies a patch (white space goes, `<` becomes an
escape sequence), so that a patch of anything in such a claim is refused, because its spec seems to change. An
update passes if it holds the very bytes, which are read as protobuf.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/extension.go,
staging/src/k8s.io/api/resource/v1/generated.proto (Kubernetes v1.36).
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from berth.client.api import Api
from berth.client.errors import ConflictError
from berth.client.resources import RESOURCE_CLAIMS
from berth.client.wire import decode_document
from berth.objects.devices.resource_claims import ResourceClaim

PROTOBUF: Final = "application/vnd.kubernetes.protobuf, application/json"
MAGIC: Final = b"k8s\x00"

Document = dict[str, Any]

_OBJECT: Final = (2,)
"""Where an answer has the object: the field `raw` of runtime.Unknown."""
_VERSION: Final = (1, 6)
_OPAQUE: Final = (
    (2, 1, 3, 2, 1, 2),
    (3, 1, 1, 2, 3, 1, 2),
    (3, 4, 5),
)
"""Field numbers of spec.devices.config, of status.allocation.devices.config and of status.devices[].data."""
_VARINT_BYTES: Final = 10
_RAW: Final = 1
"""The bytes of a runtime.RawExtension."""


def has_opaque_values(claim: ResourceClaim) -> bool:
    """Whether a patch of the claim may be refused."""
    configured = claim.spec.devices.config or (claim.allocation and claim.allocation.devices.config)
    return bool(configured) or any(device.data is not None for device in claim.status.devices)


async def read_claim(api: Api, claim: ResourceClaim) -> Document:
    """The claim of that name as it is now. Raises: ClientError; ConflictError where it changed meanwhile."""
    document = decode_document(await api.get(RESOURCE_CLAIMS, claim.namespace, claim.name))
    slots = list(_slots(document))
    if slots:
        path = RESOURCE_CLAIMS.path(claim.namespace, claim.name)
        answer = await api.call("GET", path, content_type=PROTOBUF)
        # A server that has no protobuf keeps what it shows as JSON.
        if answer.startswith(MAGIC):
            _fill(document, slots, answer[len(MAGIC) :])
    return document


def _fill(document: Document, slots: list[tuple[Document, str]], answer: bytes) -> None:
    (found,) = _at(answer, _OBJECT)
    (version,) = _at(found, _VERSION)
    if version.decode() != document["metadata"]["resourceVersion"]:
        raise ConflictError(409, "Conflict", "the claim was written while it was read")
    values = [value for path in _OPAQUE for value in _at(found, path)]
    for (holder, field), value in zip(slots, values, strict=True):
        holder[field] = msgspec.Raw(b"".join(_at(value, (_RAW,))) or b"null")


def _slots(document: Document) -> Iterator[tuple[Document, str]]:
    """Where a claim has opaque values, in the order of `_OPAQUE`."""
    status = document.get("status") or {}
    for part in document["spec"], status.get("allocation") or {}:
        for config in (part.get("devices") or {}).get("config") or ():
            if "opaque" in config:
                yield config["opaque"], "parameters"
    for device in status.get("devices") or ():
        if "data" in device:
            yield device, "data"


def _at(message: bytes, path: tuple[int, ...]) -> Iterator[bytes]:
    """The values at a path of field numbers, each of which has a length, in their order."""
    for number, value in _fields(message):
        if number == path[0]:
            if len(path) == 1:
                yield value
            else:
                yield from _at(value, path[1:])


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that have a length, in their order.

    Source: protobuf.dev/programming-guides/encoding.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(message, at)
                yield tag >> 3, message[at : at + length]
                at += length
                if at > len(message):
                    raise ValueError("no protobuf of the API server: it is cut off")
            case 5:
                at += 4
            case wire_type:
                raise ValueError(f"no protobuf of the API server: wire type {wire_type}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next byte is."""
    number = 0
    for place in range(_VARINT_BYTES):
        byte = message[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return number, at + place + 1
    raise ValueError("no protobuf of the API server: a number does not end")
