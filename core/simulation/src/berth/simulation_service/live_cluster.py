"""A live cluster, followed and never written to: the objects that decisions read, as the watches have them.

list, watch --> kinds of objects by key --copy--> what one answer is about
"""

import asyncio
from typing import Any

from berth.client.transport import Transport
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.objects.api_object import TypedObject
from berth.scheduler.watching.server_kinds import server_kinds
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.reading.kinds import KINDS
from berth.simulation_service.errors import NotSyncedError


class _Kept:
    """Implements berth.client.watching.reflector.Handler: the objects of one kind."""

    def __init__(self, objects: dict[str, TypedObject]) -> None:
        self._objects = objects

    def on_add(self, obj: TypedObject) -> None:
        self._objects[obj.key] = obj

    def on_update(self, old: TypedObject, new: TypedObject) -> None:
        del old
        self._objects[new.key] = new

    def on_delete(self, obj: TypedObject) -> None:
        self._objects.pop(obj.key, None)

    def on_synced(self) -> None:
        """The reflector itself says so, too."""


class LiveCluster:
    """The cluster at the end of these connections. One event loop owns it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cluster = ClusterInput()
        self._reflectors: list[Reflector[Any]] = []

    async def follow(self) -> None:
        """List and watch every kind that the server has, until cancelled."""
        server = await server_kinds(self._transport)
        self._reflectors = [
            Reflector(
                self._transport,
                WatchSource(server.served(kind.resource), field_selector=kind.field_selector),
                kind.decode,
                _Kept(self._cluster.objects[kind.type]),
            )
            for kind in KINDS
            if kind.resource not in server.absent
        ]
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())

    def now(self) -> ClusterInput:
        """The cluster as it is now; what is kept goes on changing, this does not. Raises: NotSyncedError."""
        lacking = [each for each in self._reflectors if not each.synced.is_set()]
        if lacking or not self._reflectors:
            what = lacking[0].source.resource.plural if lacking else "the API server"
            raise NotSyncedError(f"{what} was not read yet; try again")
        return self._cluster.copy()
