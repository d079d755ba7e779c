"""A heap of queue records that are found, replaced and taken out by `namespace/name`.

Removal leaves a dead entry in the heap that is skipped when it surfaces; once dead entries outnumber live
ones the heap is built anew, so memory follows the number of records. Each shard has an order of its own: what
a replica does not lead must not stand before what it leads.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from berth.framework.queueing.queued_pod import QueuedPodInfo

Order = Callable[[QueuedPodInfo], Any]
"""Something comparable; what it says of a record must hold until the record is put again."""

ShardOf = Callable[[QueuedPodInfo], str]
"""The shard of a record, which never changes."""

SPARE = 64


def whole(_: QueuedPodInfo) -> str:
    """Name the only shard there is."""
    return ""


class _Place(NamedTuple):
    order: Any
    stamp: int
    shard: str
    record: QueuedPodInfo


class RecordHeap:
    """Records by key, of each shard the smallest by `order` first; among equals, the one put first.

    Cost: put and pop O(log n), get, remove and peek O(1), amortised.
    """

    __slots__ = ("_entries", "_heaps", "_order", "_places", "_shard_of", "_stamp")

    def __init__(self, order: Order, shard_of: ShardOf = whole) -> None:
        self._order = order
        self._shard_of = shard_of
        self._heaps: defaultdict[str, list[tuple[Any, int, str]]] = defaultdict(list)
        self._places: dict[str, _Place] = {}
        self._stamp = 0
        self._entries = 0
        """How many the heaps have, dead ones included."""

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def get(self, key: str) -> QueuedPodInfo | None:
        """The record of that key."""
        place = self._places.get(key)
        return place.record if place else None

    def put(self, key: str, record: QueuedPodInfo) -> bool:
        """Insert a record, replace the one of its key, or restore the order after the record changed.

        Answers whether the key is new.
        """
        places = self._places
        new = key not in places
        stamp = self._stamp = self._stamp + 1
        order, shard = self._order(record), self._shard_of(record)
        places[key] = _Place(order, stamp, shard, record)
        heappush(self._heaps[shard], (order, stamp, key))
        self._entries += 1
        if self._entries > 2 * len(places) + SPARE:
            self._compact()
        return new

    def position(self, key: str) -> int:
        """How many records of its shard are popped no later than the one of that key; 0 where it is not here.

        Cost: O(n).
        """
        own = self._places.get(key)
        if own is None:
            return 0
        mine = (own.order, own.stamp)
        return sum(not mine < (p.order, p.stamp) for p in self._places.values() if p.shard == own.shard)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the record of that key out."""
        place = self._places.pop(key, None)
        return place.record if place else None

    @property
    def shards(self) -> tuple[str, ...]:
        """The shards that had records."""
        return tuple(self._heaps)

    def peek(self, shard: str = "") -> QueuedPodInfo | None:
        """The first record of the shard."""
        heap = self._heaps[shard]
        while heap:
            _, stamp, key = heap[0]
            place = self._places.get(key)
            if place is not None and place.stamp == stamp:
                return place.record
            heappop(heap)
            self._entries -= 1
        return None

    def upcoming(self, most: int) -> Iterator[QueuedPodInfo]:
        """The first records of each shard, in order; so many entries are looked at."""
        for heap in self._heaps.values():
            edge = [(heap[0], 0)] if heap else []
            for _ in range(most):
                if not edge:
                    break
                (_, stamp, key), i = heappop(edge)
                for child in range(2 * i + 1, min(2 * i + 3, len(heap))):
                    heappush(edge, (heap[child], child))
                place = self._places.get(key)
                if place is not None and place.stamp == stamp:
                    yield place.record

    def pop(self, shard: str = "") -> QueuedPodInfo | None:
        """Take the first record of the shard out."""
        record = self.peek(shard)
        if record is not None:
            _, _, key = heappop(self._heaps[shard])
            self._entries -= 1
            del self._places[key]
        return record

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (place.record for place in self._places.values())

    def _compact(self) -> None:
        self._heaps.clear()
        self._entries = len(self._places)
        for key, place in self._places.items():
            self._heaps[place.shard].append((place.order, place.stamp, key))
        for heap in self._heaps.values():
            heapify(heap)
