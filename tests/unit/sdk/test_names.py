"""docs/protocol.md says what each SDK calls each extension point."""

import re

import pytest

from berth_plugin_proto import identity_pb2
from tests.go_toolchain import ROOT

INTERFACES = {
    "Python": "python/src/berth_sdk/plugin.py",
    "Go": "go/berth/plugin.go",
    "TypeScript": "typescript/src/plugin.ts",
    "Rust": "rust/src/plugin.rs",
    "Java": "java/src/main/java/dev/berth/plugin/Plugin.java",
}
"""Where authors of plugins find their functions, below plugin-sdk/."""


def rows():
    """The table: extension points, and what each SDK calls them."""
    text = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    table = text.partition("| extension point | Python |")[2].partition("\n\n")[0].splitlines()
    sdks = ["Python", *(each.strip() for each in table[0].strip("| ").split("|"))]
    for line in table[2:]:
        point, *cells = (each.strip() for each in line.strip("| ").split("|"))
        yield point, dict(zip(sdks, cells, strict=True))


def test_points():
    """Every extension point of the protocol is there."""
    points = [name for name, number in identity_pb2.ExtensionPoint.items() if number]

    assert sorted(points) == sorted(f"EXTENSION_POINT_{point}" for point, _ in rows())


@pytest.mark.parametrize("sdk", INTERFACES)
def test_names(sdk):
    """The SDK has what it is said to have, and something for every point."""
    words = set(re.findall(r"\w+", (ROOT / "plugin-sdk" / INTERFACES[sdk]).read_text(encoding="utf-8")))
    named = {point: re.findall(r"`(\w+)`", names[sdk]) for point, names in rows()}
    not_in_the_interface = {"FILTER_OVERLAYS"} | ({"REQUEUE"} if sdk == "Java" else set())

    assert not_in_the_interface == {point for point, names in named.items() if not names}
    assert set() == {name for names in named.values() for name in names} - words
