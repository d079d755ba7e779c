"""A heap of queue records that are found, replaced and taken out by `namespace/name`.

Removal leaves a dead entry in the heap that is skipped when it surfaces; once dead entries outnumber live
ones the heap is built anew, so memory follows the number of records.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from berth.framework.queued_pod import QueuedPodInfo

Order = Callable[[QueuedPodInfo], Any]
"""Something comparable; what it says of a record must hold until the record is put again."""

SPARE = 64


class _Place(NamedTuple):
    order: Any
    stamp: int
    record: QueuedPodInfo


class RecordHeap:
    """Records by key, the smallest by `order` first; among equals, the one put first.

    Cost: put and pop O(log n), get, remove and peek O(1), amortised.
    """

    __slots__ = ("_heap", "_order", "_places", "_stamp")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._heap: list[tuple[Any, int, str]] = []
        self._places: dict[str, _Place] = {}
        self._stamp = 0

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
        new = key not in self._places
        self._stamp += 1
        order = self._order(record)
        self._places[key] = _Place(order, self._stamp, record)
        heappush(self._heap, (order, self._stamp, key))
        self._compact()
        return new

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the record of that key out."""
        place = self._places.pop(key, None)
        return place.record if place else None

    def peek(self) -> QueuedPodInfo | None:
        """The first record."""
        heap = self._heap
        while heap:
            _, stamp, key = heap[0]
            place = self._places.get(key)
            if place is not None and place.stamp == stamp:
                return place.record
            heappop(heap)
        return None

    def pop(self) -> QueuedPodInfo | None:
        """Take the first record out."""
        record = self.peek()
        if record is not None:
            _, _, key = heappop(self._heap)
            del self._places[key]
        return record

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (place.record for place in self._places.values())

    def _compact(self) -> None:
        if len(self._heap) <= 2 * len(self._places) + SPARE:
            return
        self._heap = [(place.order, place.stamp, key) for key, place in self._places.items()]
        heapify(self._heap)
