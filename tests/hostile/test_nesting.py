"""Specs that users nest deeper than any reader recurses."""

import msgspec

from berth.client.wire import bounded, decode_page
from berth.operator.rendering.nesting import too_deep

LEVELS = 9_000
"""Of ten thousand that kube-apiserver takes."""


def test_arguments():
    """Of what a user nests too deep the path is given, without recursion, however deep it is."""
    document = 1
    for _ in range(LEVELS):
        document = {"a": document}

    assert too_deep({"arguments": document}).startswith("spec.arguments.a.a.")
    assert "" == too_deep({"arguments": {"a": [{"b": 1}]}})


def test_read_from_the_api():
    """What is left of it when it is read is deep enough to be found: no plugin gets such arguments."""
    spec = b'{"arguments":' + b'{"a":' * LEVELS + b"1" + b"}" * LEVELS + b"}"
    (item,) = decode_page(b'{"items":[{"metadata":{"name":"deep"},"spec":' + spec + b"}]}").items

    assert too_deep(bounded(msgspec.json.decode)(item)["spec"])
