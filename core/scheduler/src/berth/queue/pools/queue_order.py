"""The order of activeQ, and of pods within a second of backoffQ, as the QueueSort plugin has it.

Source: pkg/scheduler/backend/queue/scheduling_queue.go convertLessFn (Kubernetes v1.36).
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.pools.record_heap import Order

Less = Callable[[QueuedPodInfo, QueuedPodInfo], bool]


class _Compared:
    """A record as it was when it was put, compared by the plugin; among equals, the one put first."""

    __slots__ = ("less", "number", "record")

    def __init__(self, record: QueuedPodInfo, less: Less, number: int) -> None:
        # A copy: heaps hold on to entries of records that have moved on and changed.
        self.record = replace(record)
        self.less = less
        self.number = number

    def __lt__(self, other: "_Compared") -> bool:
        if self.less(self.record, other.record):
            return True
        return self.number < other.number and not self.less(other.record, self.record)


def queue_order(less: Less, sort_key: Order | None = None) -> Order:
    """The order that a QueueSort plugin stands for; a `sort_key` that agrees with `less` is faster."""
    numbers = count()
    return sort_key or (lambda record: _Compared(record, less, next(numbers)))
