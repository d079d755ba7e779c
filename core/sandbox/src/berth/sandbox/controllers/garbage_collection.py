"""What is owned goes with its owners.

An object goes when none of the owners that its metadata names exists. As on a cluster, an owner has to be in
the same namespace, or cluster-wide. Orphaning and foreground deletion are not there.

Source: pkg/controller/garbagecollector (v1.36).
"""

import asyncio
from collections.abc import Callable, Iterator

from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.rest import Deletion, RestStorage
from berth.sandbox.store import Collection, Compacted, EventType, Json, StoredObject

_OWNED = b'"ownerReferences":['


class GarbageCollector:
    """Follows every collection; deletions make it look."""

    def __init__(self, rest: RestStorage) -> None:
        self._rest = rest
        self._loop = asyncio.get_running_loop()
        self._positions: dict[str, int] = {}
        self._unsubscribe: list[Callable[[], None]] = []
        self._generation = -1
        self._scheduled = False
        self._follow_all()

    def close(self) -> None:
        """Stop."""
        for stop in self._unsubscribe:
            stop()
        self._unsubscribe.clear()

    def _follow_all(self) -> None:
        self._generation = self._rest.catalogue.generation
        for resource in self._stored():
            collection = self._rest.collection(resource)
            if collection.name not in self._positions:
                self._positions[collection.name] = collection.end_position()
                self._unsubscribe.append(collection.subscribe(self._wake))

    def _stored(self) -> Iterator[ServedResource]:
        seen = set()
        for resource in self._rest.catalogue.all():
            if "delete" in resource.verbs and resource.store_name not in seen:
                seen.add(resource.store_name)
                yield resource

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._advance)

    def _advance(self) -> None:
        self._scheduled = False
        if self._rest.catalogue.generation != self._generation:
            self._follow_all()
        looks = [self._moved(self._rest.collection(resource)) for resource in self._stored()]
        if any(looks):
            self._collect()

    def _moved(self, collection: Collection) -> bool:
        """Say whether something went, or something owned came, since the last look."""
        position = self._positions.get(collection.name)
        if position is None:
            return False
        self._positions[collection.name] = collection.end_position()
        try:
            events = collection.read(position)
        except Compacted:
            return True
        return any(
            event.type is EventType.DELETED or (event.type is EventType.ADDED and _OWNED in event.entry.body)
            for event in events
        )

    def _collect(self) -> None:
        for resource in self._stored():
            for entry in self._rest.collection(resource).entries():
                if _OWNED in entry.body and self._is_orphan(entry.decode()["metadata"]):
                    self._delete(resource, entry)

    def _is_orphan(self, metadata: Json) -> bool:
        if metadata.get("deletionTimestamp"):
            return False
        owners = metadata.get("ownerReferences") or []
        return not any(self._exists(owner, metadata.get("namespace", "")) for owner in owners)

    def _exists(self, owner: Json, namespace: str) -> bool:
        resource = self._rest.catalogue.by_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
        if resource is None:
            return False
        entry = self._rest.collection(resource).get(resource.key(namespace, owner.get("name", "")))
        return entry is not None and entry.decode()["metadata"]["uid"] == owner.get("uid")

    def _delete(self, resource: ServedResource, entry: StoredObject) -> None:
        self._rest.delete(resource, entry, Deletion())
