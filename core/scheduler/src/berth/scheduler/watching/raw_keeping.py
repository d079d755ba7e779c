"""Whether the bytes of nodes and pods are kept: only while another process is shown them.

They are most of what a large cluster costs in memory, so a scheduler without sidecars has
none; when the first plugin is attached they are listed once, and kept from then on.
"""

import asyncio
from collections.abc import Callable

from berth.client import resources
from berth.client.resources import Resource
from berth.client.transport import Transport
from berth.client.watching.watch import WatchSource, pages
from berth.objects.node_decoding import decode_node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.cluster_state.raw_objects import KeptObjects, RawObjects, T

LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"


class RawKeeping:
    """Begins to keep the objects that plugins are shown."""

    def __init__(self, kept: KeptObjects, transport: Transport) -> None:
        self._kept = kept
        self._transport = transport
        self._turn = asyncio.Lock()

    def keep(self, *, wanted: bool) -> None:
        """Say at the start whether they are wanted, before the first of them comes."""
        self._kept.nodes.keeps = self._kept.pods.keeps = wanted

    async def begin(self) -> None:
        """Have all of them, if that is not so yet. Raises: ClientError where they can't be listed."""
        async with self._turn:
            if self._kept.nodes.keeps:
                return
            self.keep(wanted=True)
            try:
                await self._fill(resources.NODES, "", decode_node, self._kept.nodes)
                await self._fill(resources.PODS, LIVE_PODS, decode_pod, self._kept.pods)
            except BaseException:
                self.keep(wanted=False)
                raise

    async def _fill(
        self, resource: Resource, selector: str, decode: Callable[[bytes], T], kept: RawObjects[T]
    ) -> None:
        async for page in pages(self._transport, WatchSource(resource, field_selector=selector)):
            for item in page.items or ():
                data = bytes(item)
                kept.fill(decode(data), data)
