"""Objects of one kind, as the watch last showed them.

Source: pkg/scheduler/scheduler.go NewInformerFactory (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from berth.objects.api_object import TypedObject
from berth.snapshot.journal import Journal

T = TypeVar("T", bound=TypedObject)


class Store(Generic[T]):
    """Objects of one kind by key.

    `changes` names each one that changed, `generation` counts them, `followers` are notified of each at once.
    """

    __slots__ = ("_by_key", "_by_namespace", "changes", "followers", "generation")

    def __init__(self) -> None:
        self._by_key: dict[str, T] = {}
        self._by_namespace: dict[str, dict[str, T]] = {}
        self.generation = 0
        self.changes: Journal[str] = Journal()
        self.followers: list[Callable[[str], None]] = []

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name, None where there is none."""
        return self._by_namespace.get(namespace, {}).get(name)

    def by_key(self, key: str) -> T | None:
        """The object of that `namespace/name`, None where there is none."""
        return self._by_key.get(key)

    def in_namespace(self, namespace: str) -> Iterator[T]:
        """The objects of one namespace."""
        return iter(self._by_namespace.get(namespace, {}).values())

    def __iter__(self) -> Iterator[T]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, obj: T) -> None:
        """Add or replace an object."""
        meta = obj.metadata
        key = meta.key
        self._by_key[key] = obj
        self._by_namespace.setdefault(meta.namespace, {})[meta.name] = obj
        self._changed(key)

    def remove(self, obj: T) -> None:
        """Take an object out; one that is not here is no matter."""
        self._by_key.pop(obj.key, None)
        self._by_namespace.get(obj.namespace, {}).pop(obj.name, None)
        self._changed(obj.key)

    def _changed(self, key: str) -> None:
        self.generation += 1
        self.changes.note(key)
        for follower in self.followers:
            follower(key)
