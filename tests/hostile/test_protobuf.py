"""Bodies in protobuf that are nested as no client nests them."""

import pytest

from berth.sandbox.bodies.protobuf import MAGIC, ProtobufError, read


def field(number, data):
    """A field of bytes."""
    length, size = len(data), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


def namespace(levels):
    """A Namespace with an unknown field that holds a message in a message, and nothing in the innermost."""
    nested = b""
    for _ in range(levels):
        nested = field(1, nested)
    types = field(1, b"v1") + field(2, b"Namespace")
    return MAGIC + field(1, types) + field(2, field(15, nested))


def test_an_unknown_field_of_empty_messages_is_left_out():
    assert {"apiVersion": "v1", "kind": "Namespace"} == read(namespace(50))


def test_an_unknown_field_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ProtobufError, match="field 15"):
        read(namespace(5000))
