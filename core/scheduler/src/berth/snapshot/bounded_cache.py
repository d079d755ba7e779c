"""A cache that is bounded in bytes, for results that depend on what users write."""

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRY_BYTES = 200
"""Memory of an entry besides its key and its value."""

BYTES_WRITTEN = 16
"""About how many bytes a value takes at most for each byte of it as JSON."""


class BoundedCache(dict[K, V | None], Generic[K, V]):
    """Values by key, evicted roughly in LRU order; `cache[key]` is None where there is no value.

    There are two generations. A value that is put in or read is in the young one, where a read costs what a
    dictionary's does. Once the young one holds half of the bytes it becomes the old one, and the old one is
    dropped. A value larger than the half is not kept.
    """

    __slots__ = ("_half_bytes", "_old", "_old_bytes", "_sizes", "_young_bytes")

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._half_bytes = max_bytes // 2
        self._old: dict[K, V | None] = {}
        self._sizes: dict[K, int] = {}
        self._young_bytes = self._old_bytes = 0

    def __missing__(self, key: K) -> V | None:
        """The value from the old generation, moved to the young one."""
        value = self._old.pop(key, None)
        if value is not None:
            self[key] = value
            self._young_bytes += self._sizes[key]
            self._old_bytes -= self._sizes[key]
        return value

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._young_bytes + self._old_bytes

    def peek(self, key: K) -> V | None:
        """The value, without counting as asked for."""
        return self.get(key) if key in self else self._old.get(key)

    def may_keep(self, size_bytes: int) -> bool:
        """Whether a value that takes, with its key, so many bytes would be kept."""
        return size_bytes + ENTRY_BYTES <= self._half_bytes

    def put(self, key: K, value: V, size_bytes: int) -> list[V]:
        """Keep a value that takes, with its key, so many bytes; answers the values that had to go.

        The key has none yet.
        """
        if not self.may_keep(size_bytes):
            return [value]
        size_bytes += ENTRY_BYTES
        gone = self._age() if self._young_bytes + size_bytes > self._half_bytes else []
        self[key] = value
        self._sizes[key] = size_bytes
        self._young_bytes += size_bytes
        return gone

    def all_keys(self) -> list[K]:
        """The keys of both generations."""
        return [*self, *self._old]

    def discard(self, key: K) -> None:
        """Drop a value, if it is here."""
        if key in self:
            del self[key]
            self._young_bytes -= self._sizes.pop(key)
        elif key in self._old:
            del self._old[key]
            self._old_bytes -= self._sizes.pop(key)

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self._old, self._sizes = {}, {}
        self._young_bytes = self._old_bytes = 0

    def _age(self) -> list[V]:
        """Let what is young be old, and answer what was old; all, where much that is young had been old."""
        gone = [*self._old.items()]
        if self._young_bytes > self._half_bytes:
            gone += self.items()
            super().clear()
            self._young_bytes = 0
        for key, _ in gone:
            del self._sizes[key]
        self._old, self._old_bytes = dict(self), self._young_bytes
        super().clear()
        self._young_bytes = 0
        return [value for _, value in gone if value is not None]


def size_of(value: Any) -> int:
    """About how many bytes a value takes with all that it is made of."""
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
