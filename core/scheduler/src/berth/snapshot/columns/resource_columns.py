"""Columns of resources: what nodes offer and what their pods hold.

A resource has a place in the columns once some node offers it, one of at most `MAX_PLACES`, which it gives
up with the last node that does. What nodes offer beyond that is kept as the few amounts that there are, and
so is what pods hold of a resource without a place: where no node offers it, no answer depends on it.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec
import numpy as np

from berth.objects.pods.pod_requests import Units
from berth.objects.quantity import MAX_INT64, saturated
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from berth.snapshot.columns.growing import ByRow, Ints, grown
from berth.snapshot.node_info import NodeInfo

BASIC_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)
MAX_PLACES = 64
NOWHERE: Mapping[int, int] = {}
NO_AMOUNTS: Units = {}


class RowSums(msgspec.Struct, frozen=True):
    """What the pods of one row hold; `apart` is what they hold of resources without a place.

    Shapes: requested int64 (r,), non_zero int64 (2,).
    """

    requested: Ints
    non_zero: Ints
    pod_count: int
    apart: Units


class ResourceColumns:
    """Allocatable and requested amounts, a row a resource so that one resource lies in one stretch.

    Shapes: allocatable, requested int64 (r, capacity), in the order of `names`; non_zero int64 (2, capacity),
        cpu and memory; pod_count, allowed_pods int64 (capacity,).
    Units: milli-CPU, bytes, whole units of scalar resources.
    """

    def __init__(self, capacity: int) -> None:
        self.names: tuple[str, ...] = BASIC_RESOURCES
        """Another tuple whenever a resource gets a place or gives it up."""
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self.allocatable: Ints = np.zeros((len(self.names), capacity), dtype=np.int64)
        self.requested: Ints = np.zeros((len(self.names), capacity), dtype=np.int64)
        self.non_zero: Ints = np.zeros((2, capacity), dtype=np.int64)
        self.pod_count: Ints = np.zeros(capacity, dtype=np.int64)
        self.allowed_pods: Ints = np.zeros(capacity, dtype=np.int64)
        self._offers: dict[int, Units] = {}
        self._offering: list[int] = [0] * len(self.names)
        self._offered_apart: dict[str, dict[int, int]] = {}
        self._held_apart: dict[int, Units] = {}

    def offered_apart(self, name: str) -> Mapping[int, int]:
        """What nodes offer of a resource that has no place, by row."""
        return self._offered_apart.get(name, NOWHERE)

    def held_apart(self, row: int) -> Units:
        """What the pods of a row hold of resources that have no place."""
        return self._held_apart.get(row, NO_AMOUNTS)

    def held(self, name: str, n: int) -> ByRow:
        """What the pods of each of the first n rows hold of a resource; 0 where the node offers none."""
        place = self.index.get(name)
        return HeldApart(self, name) if place is None else self.requested[place, :n].data

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        for name in ("allocatable", "requested", "non_zero", "pod_count", "allowed_pods"):
            setattr(self, name, grown(getattr(self, name), capacity))

    def set_row(self, row: int, info: NodeInfo) -> None:
        """Take over the sums, and the node's offer where that changed."""
        if info.node_changed:
            self._offer(row, info.allocatable)
            write(self.allocatable, row, [info.allocatable.get(name, 0) for name in self.names])
            self.allowed_pods[row] = info.allowed_pods
        write(self.requested, row, [info.requested.get(name, 0) for name in self.names])
        write(self.non_zero, row, info.non_zero)
        self.pod_count[row] = len(info.pods)
        self._hold_apart(row, info.requested)

    def drop_row(self, row: int) -> None:
        """Forget what a removed node offers and what its pods hold."""
        self.requested[:, row] = 0
        self._held_apart.pop(row, None)
        self._offer(row, NO_AMOUNTS)

    def add(self, row: int, requests: Mapping[str, int], non_zero: tuple[int, int], sign: int) -> None:
        """Count one pod in on that row, or out where `sign` is -1."""
        sums = self.requested[:, row].tolist()
        apart = dict(self.held_apart(row))
        for name, amount in requests.items():
            place = self.index.get(name)
            if place is None:
                apart[name] = apart.get(name, 0) + sign * amount
            else:
                sums[place] += sign * amount
        write(self.requested, row, sums)
        both = self.non_zero[:, row].tolist()
        write(self.non_zero, row, [both[0] + sign * non_zero[0], both[1] + sign * non_zero[1]])
        self.pod_count[row] += sign
        self._hold_apart(row, apart)

    def sums(self, row: int) -> RowSums:
        """What the pods of that row hold."""
        requested, non_zero = self.requested[:, row].copy(), self.non_zero[:, row].copy()
        return RowSums(requested, non_zero, int(self.pod_count[row]), self.held_apart(row))

    def restore(self, row: int, sums: RowSums) -> None:
        """Take the row's sums back to what they were; no node has changed since."""
        self.requested[:, row] = sums.requested
        self.non_zero[:, row] = sums.non_zero
        self.pod_count[row] = sums.pod_count
        self._hold_apart(row, sums.apart)

    def move_row(self, source: int, target: int) -> None:
        """Copy a row over another that was dropped."""
        for array in (self.allocatable, self.requested, self.non_zero):
            array[:, target] = array[:, source]
            array[:, source] = 0
        self.pod_count[target] = self.pod_count[source]
        self.allowed_pods[target] = self.allowed_pods[source]
        for by_row in (self._offers, self._held_apart):
            if source in by_row:
                by_row[target] = by_row.pop(source)
        for name in self._offers.get(target, NO_AMOUNTS):
            if name in self._offered_apart:
                rows = self._offered_apart[name]
                rows[target] = rows.pop(source)

    def _hold_apart(self, row: int, requested: Units) -> None:
        if requested.keys() <= self.index.keys():
            self._held_apart.pop(row, None)
            return
        apart = {name: amount for name, amount in requested.items() if amount and name not in self.index}
        if apart:
            self._held_apart[row] = apart
        else:
            self._held_apart.pop(row, None)

    def _offer(self, row: int, allocatable: Units) -> None:
        """Take over what a node offers, beside the basic resources."""
        before = self._offers.pop(row, NO_AMOUNTS)
        offers = {
            name: amount for name, amount in allocatable.items() if amount and name not in BASIC_RESOURCES
        }
        if offers:
            self._offers[row] = offers
        for name in before:
            place = self.index.get(name)
            if place is not None:
                self._offering[place] -= 1
            elif name not in offers:
                self._offer_no_more(row, name)
        for name, amount in offers.items():
            place = self.index.get(name)
            if place is not None:
                self._offering[place] += 1
            else:
                self._offered_apart.setdefault(name, {})[row] = amount
        if before or self._offered_apart:
            self._settle()

    def _offer_no_more(self, row: int, name: str) -> None:
        rows = self._offered_apart[name]
        del rows[row]
        if not rows:
            del self._offered_apart[name]

    def _settle(self) -> None:
        """Take back places that no node needs any more, and give what is free to resources without one."""
        basic = len(BASIC_RESOURCES)
        kept = [i for i in range(len(self.names)) if i < basic or self._offering[i]]
        if len(kept) < len(self.names):
            self._set_apart([i for i in range(basic, len(self.names)) if not self._offering[i]])
            self._offering = [self._offering[i] for i in kept]
            self.allocatable, self.requested = self.allocatable[kept], self.requested[kept]
            self._name(tuple(self.names[i] for i in kept))
        new = [*islice(self._offered_apart, MAX_PLACES - len(self.names))]
        if new:
            self._give_places(new)
        if not self._offered_apart:
            self._offered_apart = {}  # a dictionary that had many keys keeps their room otherwise

    def _set_apart(self, places: list[int]) -> None:
        for place in places:
            for row in np.flatnonzero(self.requested[place]).tolist():
                held = self._held_apart.get(row, NO_AMOUNTS)
                self._held_apart[row] = held | {self.names[place]: int(self.requested[place, row])}

    def _give_places(self, new: list[str]) -> None:
        more = np.zeros((2, len(new), self.pod_count.size), dtype=np.int64)
        for i, name in enumerate(new):
            rows = self._offered_apart.pop(name)
            self._offering.append(len(rows))
            for row, amount in rows.items():
                more[0, i, row] = saturated(amount)
        self._name((*self.names, *new))
        for row, held in [*self._held_apart.items()]:
            for name in held.keys() & new:
                more[1, new.index(name), row] = saturated(held[name])
            self._hold_apart(row, held)
        self.allocatable = np.vstack((self.allocatable, more[0]))
        self.requested = np.vstack((self.requested, more[1]))

    def _name(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.index = {name: i for i, name in enumerate(names)}


class HeldApart:
    """What pods hold of a resource without a place, by row."""

    def __init__(self, columns: ResourceColumns, name: str) -> None:
        self._columns = columns
        self._name = name

    def __getitem__(self, row: int) -> int:
        if row not in self._columns.offered_apart(self._name):
            return 0
        return min(self._columns.held_apart(row).get(self._name, 0), MAX_INT64)


def write(columns: Ints, row: int, sums: Sequence[int]) -> None:
    """Write one node's sums; one that 64 bits do not hold becomes the nearest that they do."""
    try:
        columns[:, row] = sums
    except OverflowError:
        columns[:, row] = [saturated(amount) for amount in sums]
