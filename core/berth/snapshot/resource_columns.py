"""Columns of resources: what nodes offer and what their pods hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from berth.objects.quantity import MAX_INT64
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from berth.snapshot.columns import Ints, grown
from berth.snapshot.node_info import NodeInfo

BASIC_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class RowSums:
    """What the pods of one row hold. Shapes: requested int64 (r,), non_zero int64 (2,)."""

    requested: Ints
    non_zero: Ints
    pod_count: int


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

    def add(self, row: int, requests: Mapping[str, int], non_zero: tuple[int, int], sign: int) -> None:
        """Count one pod in on that row, or out where `sign` is -1."""
        self.know(requests)
        sums = self.requested[:, row].tolist()
        for name, amount in requests.items():
            sums[self.index[name]] += sign * amount
        write(self.requested, row, sums)
        both = self.non_zero[:, row].tolist()
        write(self.non_zero, row, [both[0] + sign * non_zero[0], both[1] + sign * non_zero[1]])
        self.pod_count[row] += sign

    def sums(self, row: int) -> RowSums:
        """What the pods of that row hold."""
        return RowSums(self.requested[:, row].copy(), self.non_zero[:, row].copy(), int(self.pod_count[row]))

    def restore(self, row: int, sums: RowSums) -> None:
        """Take the row's sums back to what they were; a resource that is new since is held by nobody."""
        self.requested[:, row] = 0
        self.requested[: sums.requested.size, row] = sums.requested
        self.non_zero[:, row] = sums.non_zero
        self.pod_count[row] = sums.pod_count

    def move_row(self, source: int, target: int) -> None:
        """Copy a row over another."""
        for array in (self.allocatable, self.requested, self.non_zero):
            array[:, target] = array[:, source]
        self.pod_count[target] = self.pod_count[source]
        self.allowed_pods[target] = self.allowed_pods[source]

    def know(self, amounts: Mapping[str, int]) -> None:
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
