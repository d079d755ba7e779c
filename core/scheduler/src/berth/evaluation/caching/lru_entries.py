"""Entries bounded in bytes and number, the least recently used evicted first."""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruEntries(Generic[K, V]):
    """Values by key, each with the memory that it takes."""

    __slots__ = ("_entries", "_max_entries", "max_bytes", "size_bytes")

    def __init__(self, max_bytes: int, max_entries: int | None = None) -> None:
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

    def oldest(self) -> tuple[V, int] | None:
        """The least recently used value and its size."""
        return next(iter(self._entries.values()), None)

    def newest(self, count: int) -> list[V]:
        """So many values, most recently used first."""
        return [value for value, _ in islice(reversed(self._entries.values()), count)]

    def put(self, key: K, value: V, size_bytes: int) -> list[V]:
        """Keep a value as the one used last; returns the values that were evicted for it."""
        self.drop(key)
        self._entries[key] = value, size_bytes
        self.size_bytes += size_bytes
        evicted = []
        while self._entries and self._exceeds():
            _, (gone, size) = self._entries.popitem(last=False)
            self.size_bytes -= size
            evicted.append(gone)
        return evicted

    def _exceeds(self) -> bool:
        too_many = self._max_entries is not None and len(self._entries) > self._max_entries
        return too_many or self.size_bytes > self.max_bytes

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
