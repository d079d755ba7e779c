"""A cluster's objects in memory, in place of an API server: changes are delivered to the event handlers.

put, remove --> kept, with a new version --> deliver --> the handler of the kind
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from berth.event_handlers.handler import ResourceHandler
from berth.objects.api_object import TypedObject
from berth.objects.pods.pod import Pod
from berth.simulation.reading.inputs import FINISHED

T = TypeVar("T", bound=TypedObject)


class _Change(NamedTuple):
    """A change: an added object has no `old`, a deleted one no `new`."""

    handler: ResourceHandler
    old: TypedObject | None
    new: TypedObject | None


class ClusterState:
    """Objects by kind and key. `soon` schedules a function after the current one."""

    def __init__(self, soon: Callable[[Callable[[], None]], object]) -> None:
        self.handlers: dict[type[TypedObject], ResourceHandler] = {}
        """Kinds that have none here are kept and passed to none."""
        self._soon = soon
        self._objects: dict[type[TypedObject], dict[str, Any]] = {}
        self._news: deque[_Change] = deque()
        self._version = 0
        self.changes = 0
        """How often something came, went or changed that decisions read."""

    def get(self, kind: type[T], key: str) -> T | None:
        """The object of that key, None where there is none."""
        found: T | None = self._objects.get(kind, {}).get(key)
        return found

    def all(self, kind: type[T]) -> Iterator[T]:
        """The objects of that kind, in the order of their creation."""
        return iter(list(self._objects.get(kind, {}).values()))

    def put(self, obj: T) -> T:
        """Create or replace an object; returns it as stored."""
        self.changes += 1
        return self.note(obj)

    def note(self, obj: T) -> T:
        """Replace an object by one that is equal in all fields that decisions read; returns it as stored."""
        self._version += 1
        stored = msgspec.structs.replace(
            obj, metadata=msgspec.structs.replace(obj.metadata, resource_version=str(self._version))
        )
        held = self._objects.setdefault(type(obj), {})
        old = held.get(obj.key)
        held[obj.key] = stored
        self._tell(type(obj), old, stored)
        return stored

    def remove(self, obj: TypedObject) -> None:
        """Delete an object, if it still exists."""
        old = self._objects.get(type(obj), {}).pop(obj.key, None)
        if old is not None:
            self.changes += 1
            self._tell(type(obj), old, None)

    def deliver(self) -> None:
        """Deliver all changes that were not delivered yet."""
        news = self._news
        while news:
            handler, old, new = news.popleft()
            if new is None:
                handler.on_delete(old)
            elif old is None:
                handler.on_add(new)
            else:
                handler.on_update(old, new)

    def _tell(self, kind: type[TypedObject], old: TypedObject | None, new: TypedObject | None) -> None:
        handler = self.handlers.get(kind)
        if handler is None:
            return
        # A watch with a field selector for live pods reports a finished pod as deleted.
        old, new = _unless_finished(old), _unless_finished(new)
        if old is None and new is None:
            return
        if not self._news:
            self._soon(self.deliver)
        self._news.append(_Change(handler, old, new))


def _unless_finished(obj: TypedObject | None) -> TypedObject | None:
    return None if isinstance(obj, Pod) and obj.status.phase in FINISHED else obj
