"""What takes the place of a PreFilterResult, a subset of nodes, is shown where its readers look for it."""

import re

import pytest

from berth_sdk import Code
from berth_sdk.testing import make_node, make_pod, running
from tests.go_toolchain import ROOT


def section():
    text = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    return text.partition("## A subset of nodes\n")[2].partition("\n## ")[0]


async def test_the_example_leaves_a_subset():
    """It works as it stands there: the other nodes are turned down, and evictions would not help."""
    names = {"__name__": "subset"}
    exec(re.search(r"```python\n(.*?)```", section(), re.DOTALL)[1], names)
    nodes = [make_node(f"n{i}") for i in range(4)]

    async with running(names["DataNodes"](), *nodes) as host:
        answer = await host.filter(make_pod("p", annotations={"example.com/holders": "n1,n3"}))

    assert {"n0", "n2"} == set(answer.nodes)
    assert {names["NOT_HERE"]} == set(answer.nodes.values())
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == names["NOT_HERE"].code


@pytest.mark.parametrize("sdk", ["go", "java", "python", "rust", "typescript"])
def test_a_reader_of_any_sdk_finds_it(sdk):
    """By upstream's name for it, and with the reason of that language."""
    text = (ROOT / "plugin-sdk" / sdk / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if "PreFilterResult" in line)
    reason = row.partition(", by `")[2].partition("(")[0]

    assert "(../../docs/protocol.md#a-subset-of-nodes)" in row
    assert reason in section()
