"""The table of GPUs: a row a node, a column a device, kept up to date as pods come and go."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth_gpu_share.contract import WHOLE, Demand, devices_of, memory_of, model_of
from berth_sdk import Node

USUAL_DEVICES = 8

Int = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Share:
    """What one pod takes on its node: thousandths of each of the devices, and CPU."""

    devices: tuple[int, ...]
    milli: int
    cpu: int


class DeviceTable:
    """What is left on every node, by its index.

    Shapes: left int64 (n, d), -1 where a node has no such device; kinds int64 (n, d + 1); count, model,
        memory, free, largest, untouched, cpu, cpu_left, order, version int64 (n,).
    Units: left, free and largest in thousandths of a device, cpu and cpu_left in thousandths of a core.
    """

    def __init__(self, seed: int = 0) -> None:
        self.size = 0
        self._seed = seed
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.models: dict[str, int] = {}
        self._clock = 0
        self._allocate(rows=64, columns=USUAL_DEVICES)

    def clear(self) -> None:
        """Forget all nodes."""
        self.size = 0
        self.names.clear()
        self.index.clear()

    @property
    def left(self) -> Int:
        """Return what is left of every device."""
        return self._left[: self.size]

    @property
    def count(self) -> Int:
        """Return how many devices a node has."""
        return self._columns["count"][: self.size]

    @property
    def model(self) -> Int:
        """Return the number of each node's model in `models`."""
        return self._columns["model"][: self.size]

    @property
    def memory(self) -> Int:
        """Return the memory of each of a node's devices, in MiB, 0 where that is not known."""
        return self._columns["memory"][: self.size]

    @property
    def free(self) -> Int:
        """Return what is left of all devices together."""
        return self._columns["free"][: self.size]

    @property
    def largest(self) -> Int:
        """Return what is left of the device with most left."""
        return self._columns["largest"][: self.size]

    @property
    def untouched(self) -> Int:
        """Return how many devices are free."""
        return self._columns["untouched"][: self.size]

    @property
    def kinds(self) -> Int:
        """Return how many pods of each kind a node has: with a share first, then with k whole devices."""
        return self._kinds[: self.size]

    @property
    def used(self) -> Mask:
        """Return where a pod takes CPU or a device."""
        return (self.cpu_left < self.cpu) | (self.free < WHOLE * self.count)

    @property
    def order(self) -> Int:
        """Return each node's place in an order that is drawn from its name once, 0 to 2**31 - 1."""
        return self._columns["order"][: self.size]

    @property
    def cpu(self) -> Int:
        """Return the CPU that a node can give, used or not."""
        return self._columns["cpu"][: self.size]

    @property
    def cpu_left(self) -> Int:
        """Return the CPU that is not requested."""
        return self._columns["cpu_left"][: self.size]

    @property
    def version(self) -> Int:
        """Return when each row changed last, on a clock that never goes back."""
        return self._columns["version"][: self.size]

    def put(self, index: int, node: Node, shares: Iterable[Share]) -> None:
        """Add a node at the end or change it, with the pods that are on it."""
        if index == self.size:
            self.names.append(node.name)
            self.index[node.name] = index
            self.size += 1
        count = devices_of(node)
        self._reserve_room(count)
        self._columns["count"][index] = count
        self._columns["model"][index] = self.models.setdefault(model_of(node), len(self.models))
        self._columns["memory"][index] = memory_of(node)
        self._columns["cpu"][index] = node.allocatable("cpu")
        self._columns["order"][index] = self._place(node.name)
        self.charge(index, shares)

    def remove(self, index: int, last: int) -> None:
        """Drop a row; the last one moves into its place."""
        self._left[index] = self._left[last]
        self._kinds[index] = self._kinds[last]
        for column in self._columns.values():
            column[index] = column[last]
        del self.index[self.names[index]]
        moved = self.names.pop()
        if index != last:
            self.names[index] = moved
            self.index[moved] = index
        self.size -= 1
        self._touch(index)

    def charge(self, index: int, shares: Iterable[Share]) -> None:
        """Compute a row anew from the pods on the node."""
        columns = self._columns
        count = int(columns["count"][index])
        cpu = int(columns["cpu"][index])
        # Plain numbers: a node has a handful of devices, each NumPy reduction costs as much as all of them.
        left = [WHOLE] * count
        kinds = self._kinds[index]
        kinds[:] = 0
        for share in shares:
            cpu -= share.cpu
            if share.devices:
                kinds[0 if share.milli < WHOLE else min(len(share.devices), len(kinds) - 1)] += 1
            for device in share.devices:
                if device < count:
                    left[device] -= share.milli
        self._left[index, :count] = left
        self._left[index, count:] = -1
        columns["cpu_left"][index] = cpu
        columns["free"][index] = sum(each for each in left if each > 0)
        columns["largest"][index] = max(0, *left) if left else 0
        columns["untouched"][index] = left.count(WHOLE)
        self._touch(index)

    def allowed(self, models: frozenset[str]) -> Mask:
        """Return where the model is one of these; no models allow all."""
        if not models:
            return np.ones(self.size, np.bool_)
        numbers = [self.models[name] for name in models if name in self.models]
        return np.isin(self.model, numbers)

    def room(self, demand: Demand) -> Mask:
        """Return where enough is free for the demand, models aside."""
        if demand.milli == WHOLE:
            return self.untouched >= demand.count
        if demand.count > 1:
            several: Mask = (self.left >= demand.milli).sum(axis=1) >= demand.count
            return several
        return self.largest >= demand.milli

    def _place(self, name: str) -> int:
        digest = hashlib.blake2b(f"{self._seed}/{name}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") >> 1

    def _touch(self, index: int) -> None:
        self._clock += 1
        self._columns["version"][index] = self._clock

    def _allocate(self, rows: int, columns: int) -> None:
        self._left = np.full((rows, columns), -1, np.int64)
        self._kinds = np.zeros((rows, columns + 1), np.int64)
        names = (
            "count",
            "model",
            "memory",
            "free",
            "largest",
            "untouched",
            "cpu",
            "cpu_left",
            "order",
            "version",
        )
        self._columns: dict[str, Int] = {name: np.zeros(rows, np.int64) for name in names}

    def _reserve_room(self, devices: int) -> None:
        rows, columns = self._left.shape
        if self.size <= rows and devices <= columns:
            return
        left, kinds, held = self._left, self._kinds, self._columns
        self._allocate(max(rows, 2 * self.size), max(columns, devices))
        self._left[:rows, :columns] = left
        self._kinds[:rows, : columns + 1] = kinds
        for name, column in held.items():
            self._columns[name][:rows] = column
