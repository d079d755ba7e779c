"""Objects that there would be: in the scheduler's stores while a trial runs, under names that none has.

No object of a cluster refers to such a name, so that whatever reads the stores meanwhile passes over it.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from berth.framework.mirrors.store import Store
from berth.objects.api_object import TypedObject

T = TypeVar("T", bound=TypedObject)

SUPPOSED_NAME = "supposed object"
"""No name of an object has a blank in it."""


class Supposed(Generic[T]):
    """A store in which these objects are, too, while the block runs."""

    def __init__(self, store: Store[T], objects: Sequence[T]) -> None:
        self._store = store
        self._objects = objects

    def __enter__(self) -> None:
        """Put them in."""
        for obj in self._objects:
            self._store.put(obj)

    def __exit__(self, *_: object) -> None:
        """Take them out."""
        for obj in self._objects:
            self._store.remove(obj)
