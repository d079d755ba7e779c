"""What was worked out last, within a number of bytes: nothing that users write makes it larger than that."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 200
"""What an entry costs besides its key and its value."""

OBJECT_BYTES = 56
_COLLECTIONS: dict[type, int] = {tuple: 8, list: 8, set: 32, frozenset: 32, dict: 48}
_PLAIN = frozenset({type(None), bool, int, float})
_FIELDS: dict[type, tuple[str, ...]] = {str: (), bytes: ()}
"""The names of what a value of that kind is made of, looked up once for each kind."""


class Recent(Generic[K, V]):
    """Values by key; what was asked for longest ago goes first. A value alone above the limit is not kept."""

    __slots__ = ("_bytes", "_entries", "_most_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """The value, None where there is none (any more)."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def peek(self, key: K) -> V | None:
        """The same, without counting as asked for."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, size_bytes: int) -> list[K]:
        """Keep a value that takes, with its key, so many bytes; answers the keys that had to go."""
        self.discard(key)
        self._entries[key] = value, size_bytes + ENTRY_BYTES
        self._bytes += size_bytes + ENTRY_BYTES
        gone = []
        while self._bytes > self._most_bytes:
            oldest, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed
            gone.append(oldest)
        return gone

    def discard(self, key: K) -> bool:
        """Drop a value; answers whether it was here."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self._bytes -= entry[1]
        return True

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._bytes = 0


def size_of(value: Any) -> int:
    """About how many bytes a value takes with all that it is made of. Cost: linear in its parts."""
    total, rest = 0, [value]
    while rest:
        part = rest.pop()
        kind = type(part)
        total += OBJECT_BYTES
        if kind is str:
            total += len(part)
        elif kind in _COLLECTIONS:
            total += _COLLECTIONS[kind] * len(part)
            rest.extend(part)
            if kind is dict:
                rest.extend(part.values())
        elif kind not in _PLAIN:
            if kind not in _FIELDS:
                _FIELDS[kind] = _fields(kind)
            total += len(part) if kind is bytes else 0
            rest.extend([getattr(part, name) for name in _FIELDS[kind]])
    return total


def _fields(kind: type) -> tuple[str, ...]:
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", ())
    return getattr(kind, "__struct_fields__", None) or tuple(getattr(kind, "__slots__", ()))
