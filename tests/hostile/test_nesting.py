"""Objects nested deeper than any decoder recurses."""

import msgspec
import pytest

from berth.client.nesting import DEEPEST, shallow
from berth.client.wire import decode_page, decode_watch_event
from berth.operator.rendering.nesting import too_deep

LEVELS = 9_000
"""Of ten thousand that kube-apiserver takes."""


def deep(opening=b'{"a":', closing=b"}"):
    return opening * LEVELS + b"1" + closing * LEVELS


def depth(value):
    levels = 0
    while isinstance(value, dict | list) and value:
        levels, value = levels + 1, value["a"] if isinstance(value, dict) else value[0]
    return levels


@pytest.mark.parametrize("text", [deep(), deep(b"[", b"]")])
def test_shallow(text):
    """What is nested too deep is emptied, and the rest is as it was."""
    value = msgspec.json.decode(b'{"before":"}{\\"","a":' + shallow(text) + b',"after":[{}]}')

    assert ('}{"', [{}], DEEPEST) == (value["before"], value["after"], depth(value["a"]))


def test_page():
    """A deep object among others does not keep the others from being read."""
    items = b'{"metadata":{"name":"deep"},"spec":' + deep() + b'},{"metadata":{"name":"flat"}}'
    page = decode_page(b'{"metadata":{"resourceVersion":"7"},"items":[' + items + b"]}")

    assert ["deep", "flat"] == [msgspec.json.decode(one)["metadata"]["name"] for one in page.items]
    assert "7" == page.metadata.resource_version


def test_watch_event():
    """An event about a deep object is read."""
    event = decode_watch_event(
        b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"spec":' + deep() + b"}}"
    )

    assert "deep" == msgspec.json.decode(event.object)["metadata"]["name"]


def test_arguments():
    """Of what a user nests too deep the path is given, without recursion, however deep it is."""
    document = 1
    for _ in range(LEVELS):
        document = {"a": document}

    assert too_deep({"arguments": document}).startswith("spec.arguments.a.a.")
    assert "" == too_deep({"arguments": {"a": [{"b": 1}]}})
