"""What the README shows works as it stands there."""

import re
from pathlib import Path

from berth_sdk.testing import make_node, make_pod, running

README = Path(__file__).parents[2] / "README.md"


def first_plugin():
    """The README's plugin, without the line that serves it for ever."""
    (source,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    made, _, _ = source.partition("\n\nserve(")
    names = {}
    exec(made, names)  # our own README
    return names["plugin"]("big-nodes", filter=names["filter"])


async def test_the_first_plugin():
    """The README's filter lets a node of 16 CPUs pass and turns a smaller one down, with its reason."""
    big, small = make_node("big", allocatable={"cpu": "16"}), make_node("small", allocatable={"cpu": "15"})

    async with running(first_plugin(), big, small) as host:
        answer = await host.filter(make_pod("p"))

    assert ["small"] == list(answer.nodes)
    assert "node(s) had fewer than 16 CPUs" == answer.nodes["small"].text
