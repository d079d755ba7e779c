"""Entries bounded in bytes, in number or in both, the least recently used evicted first.

All parts that keep only the latest of something use it; where a read has to cost what a dictionary's does,
there is `bounded_cache.py`.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruEntries(Generic[K, V]):
    """Values by key, each with the memory that it takes, in bytes or in another unit."""

    __slots__ = ("_entries", "_max_entries", "max_bytes", "size_bytes")

    def __init__(self, max_bytes: float = inf, max_entries: float = inf) -> None:
        self.max_bytes = max_bytes
        self._max_entries = max_entries
        self.size_bytes = 0
        """About how much memory is in use."""
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """The keys, least recently used first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        """The value, which counts as used."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def peek(self, key: K) -> V | None:
        """The value, without counting as used."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def values(self) -> Iterator[V]:
        """The values, least recently used first."""
        return (value for value, _ in self._entries.values())

    def oldest(self) -> tuple[V, int] | None:
        """The least recently used value and its size."""
        return next(iter(self._entries.values()), None)

    def newest(self, count: int | None = None) -> Iterator[V]:
        """All values, or as many, most recently used first."""
        return (value for value, _ in islice(reversed(self._entries.values()), count))

    def put(self, key: K, value: V, size_bytes: int = 0) -> list[V]:
        """Keep a value as the one used last; returns the values that were evicted for it."""
        self.drop(key)
        self._entries[key] = value, size_bytes
        self.size_bytes += size_bytes
        evicted = []
        while len(self._entries) > self._max_entries or self.size_bytes > self.max_bytes:
            evicted.append(self.pop_oldest())
        return evicted

    def pop_oldest(self) -> V:
        """Drop the least recently used value, and return it. Raises: KeyError where there is none."""
        _, (value, size) = self._entries.popitem(last=False)
        self.size_bytes -= size
        return value

    def drop(self, key: K) -> None:
        """Drop the key's value, if it has one."""
        _, size = self._entries.pop(key, (None, 0))
        self.size_bytes -= size

    def clear(self) -> list[V]:
        """Drop all values, and return them."""
        gone = [value for value, _ in self._entries.values()]
        self._entries.clear()
        self.size_bytes = 0
        return gone
