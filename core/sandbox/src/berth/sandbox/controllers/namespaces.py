"""The end of a namespace: what is in it goes first, then the namespace itself.

Source: pkg/controller/namespace (v1.36).
"""

import asyncio
from collections.abc import Callable

from berth.sandbox.errors import ApiError
from berth.sandbox.rest import Deletion, RestStorage
from berth.sandbox.store import Collection, StoredObject


class NamespaceLifecycle:
    """Empties and removes namespaces that are Terminating."""

    def __init__(self, rest: RestStorage) -> None:
        found = rest.catalogue.get("", "v1", "namespaces")
        assert found is not None
        self._rest = rest
        self._resource = found
        self._collection = rest.collection(found)
        self._loop = asyncio.get_running_loop()
        self._watched: dict[str, Callable[[], None]] = {}
        self._scheduled = False
        self._unsubscribe = self._collection.subscribe(self._wake)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        self._stop_watching()

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._advance)

    def _advance(self) -> None:
        self._scheduled = False
        for entry in self._collection.entries():
            if b'"phase":"Terminating"' in entry.body:
                self._finalize(entry)
        if not any(b'"phase":"Terminating"' in entry.body for entry in self._collection.entries()):
            self._stop_watching()

    def _finalize(self, namespace: StoredObject) -> None:
        left = 0
        for resource in self._rest.catalogue.all():
            if not resource.namespaced or "delete" not in resource.verbs:
                continue
            collection = self._rest.collection(resource)
            for entry in collection.entries(f"{namespace.key}/"):
                if b'"deletionTimestamp":"' not in entry.body:
                    self._rest.delete(resource, entry, Deletion())
            if collection.entries(f"{namespace.key}/"):
                left += 1
                self._watch(collection)
        if not left:
            self._remove(namespace)

    def _remove(self, namespace: StoredObject) -> None:
        try:
            self._rest.delete(self._resource, namespace, Deletion())
        except ApiError:  # it went in between
            return

    def _watch(self, collection: Collection) -> None:
        # Something is held by its kubelet or a finalizer: look again when it moves.
        if collection.name not in self._watched:
            self._watched[collection.name] = collection.subscribe(self._wake)

    def _stop_watching(self) -> None:
        for unsubscribe in self._watched.values():
            unsubscribe()
        self._watched.clear()
