"""The objects of one kind as a mirror last saw them, with nothing kept beside them that they say themselves.

In a large cluster a second copy of names, UIDs and versions takes more memory than the table of the objects.

Called by: reflector.
"""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from berth.client.wire import Meta, ObjectKey
from berth.objects.api_object import ObjectMeta, TypedObject

T = TypeVar("T")


class Known(NamedTuple, Generic[T]):
    """An object, and which version of which object it is."""

    identity: Meta | ObjectMeta
    obj: T

    def is_version(self, meta: Meta) -> bool:
        """Whether it is this version of this object."""
        return self.identity.resource_version == meta.resource_version and self.identity.uid == meta.uid


class KnownObjects(Generic[T]):
    """Objects by namespace and name.

    An object that does not have its identity itself, such as a parsed document, is kept with it.
    """

    def __init__(self) -> None:
        self._named: dict[str, dict[str, T | Known[T]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: ObjectKey) -> bool:
        return key.name in self._named.get(key.namespace, ())

    def __iter__(self) -> Iterator[ObjectKey]:
        for namespace, named in self._named.items():
            for name in named:
                yield ObjectKey(namespace, name)

    def objects(self) -> list[T]:
        """All of them."""
        return [_known(kept).obj for named in self._named.values() for kept in named.values()]

    def __getitem__(self, key: ObjectKey) -> Known[T]:
        return _known(self._named[key.namespace][key.name])

    def get(self, key: ObjectKey) -> Known[T] | None:
        """The object of that name, None where there is none."""
        kept = self._named.get(key.namespace, {}).get(key.name)
        return None if kept is None else _known(kept)

    def put(self, meta: Meta, obj: T) -> None:
        """Keep an object in place of what has its name."""
        known = Known(_identity(meta, obj), obj)
        identity = known.identity
        named = self._named.setdefault(identity.namespace, {})
        # A dictionary keeps the key that it has: the old version's name would stay with it.
        if named.pop(identity.name, None) is None:
            self._count += 1
        named[identity.name] = obj if identity is not meta else known

    def pop(self, key: ObjectKey) -> T:
        """Take out the object of that name. Raises: KeyError."""
        named = self._named[key.namespace]
        obj = _known(named.pop(key.name)).obj
        self._count -= 1
        if not named:
            del self._named[key.namespace]
        return obj


def _identity(meta: Meta, obj: object) -> Meta | ObjectMeta:
    """The object's own metadata where that says what `meta` says."""
    own = obj.metadata if isinstance(obj, TypedObject) else None
    if own is not None and (own.namespace, own.name, own.uid, own.resource_version) == (
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resource_version,
    ):
        return own
    return meta


def _known(kept: T | Known[T]) -> Known[T]:
    if isinstance(kept, Known):
        return kept
    assert isinstance(kept, TypedObject), "others are kept with their identity"
    return Known(kept.metadata, kept)
