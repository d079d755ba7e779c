"""A cache that is bounded in bytes, in entries, or in both; the least recently used entry is evicted first.

Results that depend on what users write are kept in one: different inputs without end take no more memory.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 200
"""Memory of an entry besides its key and its value."""

BYTES_WRITTEN = 16
"""About how many bytes a value takes at most for each byte of it as JSON."""


class BoundedCache(Generic[K, V]):
    """Values by key, each with the memory that it takes with its key."""

    __slots__ = ("_entries", "_max_entries", "_sizes", "max_bytes", "size_bytes")

    def __init__(self, max_bytes: float = inf, max_entries: float = inf) -> None:
        self.max_bytes = max_bytes
        self._max_entries = max_entries
        self.size_bytes = 0
        """About how much memory is in use."""
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys, least recently used first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        """The value, which counts as used; None where there is none."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def peek(self, key: K) -> V | None:
        """The value, without counting as used."""
        return self._entries.get(key)

    def values(self) -> Iterator[V]:
        """The values, least recently used first."""
        return iter(self._entries.values())

    def oldest(self) -> tuple[V, int] | None:
        """The least recently used value and the bytes that its entry takes."""
        key = next(iter(self._entries), None)
        return None if key is None else (self._entries[key], self._sizes[key])

    def newest(self, count: int | None = None) -> Iterator[V]:
        """All values, or the first `count`, most recently used first."""
        return islice(reversed(self._entries.values()), count)

    def may_keep(self, size_bytes: int) -> bool:
        """Whether a value that takes this many bytes with its key would be kept."""
        return size_bytes + ENTRY_BYTES <= self.max_bytes

    def put(self, key: K, value: V, size_bytes: int = 0) -> list[V]:
        """Keep a value as the one used last; returns the values that were evicted for it.

        A value that is too large for the cache is returned at once, and evicts no other.
        """
        self.drop(key)
        if not self.may_keep(size_bytes):
            return [value]
        self._entries[key] = value
        self._sizes[key] = size_bytes + ENTRY_BYTES
        self.size_bytes += size_bytes + ENTRY_BYTES
        evicted = []
        while len(self._entries) > self._max_entries or self.size_bytes > self.max_bytes:
            evicted.append(self.pop_oldest())
        return evicted

    def pop_oldest(self) -> V:
        """Drop the least recently used value, and return it. Raises: KeyError where there is none."""
        key, value = self._entries.popitem(last=False)
        self.size_bytes -= self._sizes.pop(key)
        return value

    def drop(self, key: K) -> None:
        """Drop the key's value, if it has one."""
        size = self._sizes.pop(key, None)
        if size is not None:
            del self._entries[key]
            self.size_bytes -= size

    def clear(self) -> list[V]:
        """Drop all values, and return them."""
        gone = [*self._entries.values()]
        self._entries.clear()
        self._sizes.clear()
        self.size_bytes = 0
        return gone


def size_of(value: Any) -> int:
    """About how many bytes a value takes, with everything that it refers to."""
    return BYTES_WRITTEN * len(_encode(value))


def _parts(value: Any) -> Any:
    """What a value is made of that is not known to the encoder; None for one that has no parts."""
    kind = type(value)
    if kind not in _PARTS:
        names = getattr(kind, "__slots__", ())
        _PARTS[kind] = attrgetter(*names) if names else _no_parts
    return _PARTS[kind](value)


def _no_parts(value: Any) -> None:
    del value


_PARTS: dict[type, Callable[[Any], Any]] = {}
_encode = msgspec.json.Encoder(enc_hook=_parts).encode
