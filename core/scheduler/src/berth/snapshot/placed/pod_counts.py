"""Numbers of pods by row, and their sums by domain, kept up to date as pods come and go."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple
from weakref import WeakSet

import numpy as np

from berth.snapshot.columns.growing import Ints, Mask

MAX_BYTES = 32 << 20
LEAST_COLUMNS = 512
"""So many columns are kept in clusters so large that they take more than `MAX_BYTES`."""

LEAST_BYTES = 8192
"""A column counts as that large at least: each placed pod changes all columns that it counts in."""

MAX_DIVISIONS = 4
"""So many sums over domains are kept beside a column, each of them small beside it."""

NODES_PER_DOMAIN = 16
"""Domains of fewer nodes than this are summed up each time."""


class Division(NamedTuple):
    """Nodes divided into numbered domains, 0 for nodes that count in none; `key` names the division.

    Where they are `apart`, row i is in domain i + 1 if it counts.
    Shapes: domain_of int64 (n,); known bool (width,), which domains have nodes.
    """

    key: Hashable
    domain_of: Ints
    known: Mask
    apart: bool = False

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.domain_of.nbytes + self.known.nbytes


class Counts:
    """Numbers of pods by row, and their sums by domain. Shapes: column int64 (capacity,), sums (width,)."""

    __slots__ = ("__weakref__", "column", "sums")

    def __init__(self, capacity: int) -> None:
        self.column: Ints = np.zeros(capacity, dtype=np.int64)
        self.sums: dict[Hashable, tuple[Ints, Ints]] = {}

    def add(self, row: int, sign: int) -> None:
        """Count a pod in or out."""
        self.column[row] += sign
        if self.sums:
            for domain_of, sums in self.sums.values():
                sums[domain_of[row]] += sign

    def add_up(self, rows: Mapping[int, int]) -> None:
        """Count so many pods in on each of the rows, before any sum is asked for."""
        self.column[[*rows]] += np.fromiter(rows.values(), np.int64, len(rows))

    def by_domain(self, division: Division) -> Ints:
        """The sums over the division's domains, added up."""
        here = self.column[: division.domain_of.size]
        if division.apart:
            sums: Ints = np.zeros(division.known.size, dtype=np.int64)
            np.multiply(here, division.known[1:], out=sums[1:])
            return sums
        return np.bincount(division.domain_of, here, division.known.size).astype(np.int64)


class Sums:
    """Keeps sums over large domains beside the columns that they are of."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._divided: WeakSet[Counts] = WeakSet()

    def of(self, counts: Counts, division: Division) -> Ints:
        """How many pods are in each domain, not to be written to. Shapes: result (width,)."""
        known = counts.sums.get(division.key)
        if known is not None:
            return known[1]
        sums = counts.by_domain(division)
        if division.known.size * NODES_PER_DOMAIN <= self._capacity:
            if len(counts.sums) == MAX_DIVISIONS:
                counts.sums.clear()
            self._divided.add(counts)
            counts.sums[division.key] = division.domain_of, sums
        return sums

    def forget(self) -> None:
        """Forget all sums: nodes may be in other domains now."""
        if not self._divided:
            return  # as for each node of the first list
        for counts in self._divided:
            counts.sums.clear()
        self._divided.clear()


def max_bytes(capacity: int) -> int:
    """How much memory columns of so many rows may take together."""
    return max(MAX_BYTES, LEAST_COLUMNS * capacity * np.dtype(np.int64).itemsize)


def count_on(rows: dict[int, int], row: int, sign: int) -> None:
    """Count on one row; a row that is left without any goes."""
    count = rows.get(row, 0) + sign
    if count:
        rows[row] = count
    else:
        rows.pop(row, None)
