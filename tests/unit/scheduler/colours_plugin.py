"""A plugin as a process of its own: takes nodes of its colour, and misbehaves when asked to.

Called by tests as `python colours_plugin.py SOCKET VERSION COLOUR`. While a file MISBEHAVE stands beside the
socket, what it holds is done: `hang` answers nothing, `garbage` answers what no filter may.
"""

import asyncio
import sys
from pathlib import Path

from berth_sdk import Plugin, scheduling, serve


class Colours(Plugin):
    """Nodes of one colour."""

    name = "colours"
    node_local = True

    def __init__(self, version: str, colour: str, orders: Path) -> None:
        self.version = version
        self._colour = colour
        self._orders = orders

    async def pre_filter(self, pod):
        del pod
        while self._orders.exists() and self._orders.read_text() == "hang":  # noqa: ASYNC110 - a file says it
            await asyncio.sleep(0.02)

    def filter(self, pod, node):
        del pod
        return None if node.labels.get("colour") == self._colour else "node(s) of another colour"


def confuse(orders: Path) -> None:
    """Let the SDK send what it never would: verdicts for another number of nodes."""
    honest = scheduling.pack_verdicts

    def pack(verdicts, candidates):
        packed = honest(verdicts, candidates)
        if orders.exists() and orders.read_text() == "garbage":
            packed.each = b"\t" * 7
        return packed

    scheduling.pack_verdicts = pack


if __name__ == "__main__":
    _, socket, version, colour = sys.argv
    orders = Path(socket).parent / "MISBEHAVE"
    confuse(orders)
    serve(Colours(version, colour, orders), f"unix:{socket}", grace_seconds=0.2)
