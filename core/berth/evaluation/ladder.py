"""Rows by their total scores, the best ones at hand: a row that moves costs no look at the others.

Only the upper rungs are kept, those with at least `LOOKED_AT` rows together when they are made: what falls
below them is found again when all of them are empty. A rung's rows are in ascending order, as in a search
for the highest total, so equal chances choose equal nodes.
"""

from array import array
from bisect import bisect_left

import numpy as np

from berth.snapshot.columns import Ints, Rows

LOOKED_AT = 256
ROW_BYTES = 4
"""What a row on a rung takes, which may be every one."""

LEFT_OUT = np.iinfo(np.int64).min
"""The total of a row that is out of the question."""


class Ladder:
    """The upper rungs over a column of totals."""

    __slots__ = ("_asked", "_lowest", "_rungs")

    def __init__(self) -> None:
        self._rungs: dict[int, array[int]] = {}
        self._lowest = 0
        self._asked = False

    def clear(self) -> None:
        """Forget the rungs, because all totals are others."""
        self._rungs.clear()
        self._asked = False

    def move(self, row: int, before: int, total: int) -> None:
        """Take note of a row's new total; it had another one before."""
        if not self._rungs:
            return
        if before >= self._lowest:
            self._leave(row, before)
        if total >= self._lowest:
            rung = self._rungs.get(total)
            if rung is None:
                self._rungs[total] = array("i", (row,))
            else:
                rung.insert(bisect_left(rung, row), row)

    def _leave(self, row: int, total: int) -> None:
        rung = self._rungs[total]
        if len(rung) == 1:
            del self._rungs[total]
        else:
            del rung[bisect_left(rung, row)]

    def best(self, totals: Ints) -> "tuple[int, array[int] | Rows]":
        """The highest total, and the rows that have it. Shapes: totals int64 (n,), some not left out."""
        if not self._rungs:
            if not self._asked:
                # Rungs are of use only to totals that are asked about again.
                self._asked = True
                return highest_of(totals)
            self._make(totals)
        highest = max(self._rungs)
        return highest, self._rungs[highest]

    def _make(self, totals: Ints) -> None:
        if totals.size > LOOKED_AT:
            least = int(np.partition(totals, totals.size - LOOKED_AT)[totals.size - LOOKED_AT])
        else:
            least = int(totals.min())
        # A row that is left out is on no rung.
        self._lowest = max(least, LEFT_OUT + 1)
        rows = (totals >= self._lowest).nonzero()[0]
        there = totals[rows]
        for total in sorted(set(there.tolist())):
            self._rungs[total] = _packed(rows[there == total])


def highest_of(totals: Ints) -> tuple[int, Rows]:
    """The highest total, and the places of those who have it. Shapes: totals int64 (k,); result intp (m,)."""
    highest = int(totals.max())
    return highest, (totals == highest).nonzero()[0]


def _packed(rows: Rows) -> "array[int]":
    packed = array("i")
    packed.frombytes(rows.astype(np.int32).tobytes())
    return packed
