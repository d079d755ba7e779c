"""The rows with the highest total scores, kept sorted: a changed row costs the same on any number of rows.

Only the highest totals are kept, at least `LOOKED_AT` rows when the index is built; it is built again when it
is empty. The rows of one total are in ascending order, so that a random draw takes the same node as it would
from a scan of all totals.
"""

from array import array
from bisect import bisect_left

import numpy as np

from berth.snapshot.columns.growing import Ints, Mask, Rows

LOOKED_AT = 256
ROW_BYTES = 4
"""Memory of one row in the index, which may hold every row."""

LEFT_OUT = np.iinfo(np.int64).min
"""The total of a row that the pod does not fit on."""


class TopScores:
    """The rows of the highest totals of one column, by total; with `among`, of these rows alone.

    Shapes: among intp (k,), ascending, on none of which the total is left out.
    """

    __slots__ = ("_asked", "_lowest", "_rows_by_total", "_there", "among")

    def __init__(self, among: Rows | None = None) -> None:
        self.among = among
        self._there: Mask | None = None
        self._rows_by_total: dict[int, array[int]] = {}
        self._lowest = 0
        self._asked = False

    def clear(self) -> None:
        """Drop the index, because all totals changed."""
        self._rows_by_total.clear()
        self._asked = False

    def move(self, row: int, before: int, total: int) -> None:
        """Update the index with a row's new total."""
        if not self._rows_by_total or not (self._there is None or self._there.item(row)):
            return
        if before >= self._lowest:
            self._leave(row, before)
        if total >= self._lowest:
            rung = self._rows_by_total.get(total)
            if rung is None:
                self._rows_by_total[total] = array("i", (row,))
            else:
                rung.insert(bisect_left(rung, row), row)

    def _leave(self, row: int, total: int) -> None:
        rung = self._rows_by_total[total]
        if len(rung) == 1:
            del self._rows_by_total[total]
        else:
            del rung[bisect_left(rung, row)]

    def best(self, totals: Ints) -> "tuple[int, array[int] | Rows]":
        """The highest total, and the rows that have it. Shapes: totals int64 (n,), some not left out."""
        if not self._rows_by_total:
            if not self._asked:
                # An index is of use only to totals that are read a second time.
                self._asked = True
                return self._scanned(totals)
            self._make(totals)
        highest = max(self._rows_by_total)
        return highest, self._rows_by_total[highest]

    def _scanned(self, totals: Ints) -> tuple[int, Rows]:
        if self.among is None:
            return highest_of(totals)
        highest, places = highest_of(totals[self.among])
        return highest, self.among[places]

    def _make(self, column: Ints) -> None:
        totals = column if self.among is None else column[self.among]
        if totals.size > LOOKED_AT:
            least = int(np.partition(totals, totals.size - LOOKED_AT)[totals.size - LOOKED_AT])
        else:
            least = int(totals.min())
        # A row that the pod does not fit on is in no index.
        self._lowest = max(least, LEFT_OUT + 1)
        rows = (totals >= self._lowest).nonzero()[0]
        there = totals[rows]
        if self.among is not None:
            rows = self.among[rows]
            self._there = np.zeros(column.size, dtype=bool)
            self._there[self.among] = True
        for total in sorted(set(there.tolist())):
            self._rows_by_total[total] = _packed(rows[there == total])


def highest_of(totals: Ints) -> tuple[int, Rows]:
    """The highest total, and the places of those who have it. Shapes: totals int64 (k,); result intp (m,)."""
    highest = int(totals.max())
    return highest, (totals == highest).nonzero()[0]


def _packed(rows: Rows) -> "array[int]":
    packed = array("i")
    packed.frombytes(rows.astype(np.int32).tobytes())
    return packed
