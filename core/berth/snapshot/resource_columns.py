"""Columns of resources: what nodes offer and what their pods hold."""

from collections.abc import Sequence

import numpy as np

from berth.objects.quantity import MAX_INT64
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from berth.snapshot.columns import Ints, grown
from berth.snapshot.node_info import NodeInfo

BASIC_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)


class ResourceColumns:
    """Allocatable and requested amounts, a row a resource so that one resource lies in one stretch.

    Shapes: allocatable, requested int64 (r, capacity); non_zero int64 (2, capacity), cpu and memory;
        pod_count, allowed_pods int64 (capacity,).
    Units: milli-CPU, bytes, whole units of scalar resources.
    """

    def __init__(self, capacity: int) -> None:
        self.names: list[str] = list(BASIC_RESOURCES)
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self.allocatable: Ints = np.zeros((len(self.names), capacity), dtype=np.int64)
        self.requested: Ints = np.zeros((len(self.names), capacity), dtype=np.int64)
        self.non_zero: Ints = np.zeros((2, capacity), dtype=np.int64)
        self.pod_count: Ints = np.zeros(capacity, dtype=np.int64)
        self.allowed_pods: Ints = np.zeros(capacity, dtype=np.int64)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        for name in ("allocatable", "requested", "non_zero", "pod_count", "allowed_pods"):
            setattr(self, name, grown(getattr(self, name), capacity))

    def set_row(self, row: int, info: NodeInfo) -> None:
        """Take over the sums, and the node's offer where that changed."""
        self.know(info.requested)
        write(self.requested, row, [info.requested.get(name, 0) for name in self.names])
        write(self.non_zero, row, info.non_zero)
        self.pod_count[row] = len(info.pods)
        if info.node_changed:
            self.know(info.allocatable)
            write(self.allocatable, row, [info.allocatable.get(name, 0) for name in self.names])
            self.allowed_pods[row] = info.allowed_pods

    def move_row(self, source: int, target: int) -> None:
        """Copy a row over another."""
        for array in (self.allocatable, self.requested, self.non_zero):
            array[:, target] = array[:, source]
        self.pod_count[target] = self.pod_count[source]
        self.allowed_pods[target] = self.allowed_pods[source]

    def know(self, amounts: dict[str, int]) -> None:
        """Give every resource named a row of its own."""
        for name in amounts:
            if name not in self.index:
                self.index[name] = len(self.names)
                self.names.append(name)
                empty = np.zeros((1, self.pod_count.shape[0]), dtype=np.int64)
                self.allocatable = np.vstack((self.allocatable, empty))
                self.requested = np.vstack((self.requested, empty))


def write(columns: Ints, row: int, sums: Sequence[int]) -> None:
    """Write one node's sums; one that 64 bits do not hold becomes the largest that they do."""
    try:
        columns[:, row] = sums
    except OverflowError:
        columns[:, row] = [min(amount, MAX_INT64) for amount in sums]
