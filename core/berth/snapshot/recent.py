"""What was worked out last, within a number of bytes: nothing that users write makes it larger than that."""

import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 200
"""What an entry costs besides its key and its value."""


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
        total += sys.getsizeof(part)
        if isinstance(part, str | bytes | int | float | np.ndarray | None):
            continue
        if isinstance(part, dict):
            rest.extend(part)
            rest.extend(part.values())
        elif isinstance(part, tuple | list | set | frozenset):
            rest.extend(part)
        else:
            kind = type(part)
            names = getattr(kind, "__struct_fields__", None) or getattr(kind, "__slots__", ())
            rest.extend(getattr(part, name) for name in names)
    return total
