"""Columns that plugins make of what nodes hold, made again only for the rows that changed since.

What a plugin works out for each node before it looks at the pod is the same for all pods: how much is free,
how balanced a node is. A column of it is made once, for all nodes at a time, and then follows the journal of
changed rows, a row at a time.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.snapshot.bounded_cache import BoundedCache, size_of
from berth.snapshot.columns.row_journal import RowJournal

MAX_BYTES = 64 << 20
MANY = 64
SHARE = 64
"""More changed rows than max(MANY, n / SHARE) are not made again one by one."""

T = TypeVar("T")


class RowColumns(Generic[T]):
    """Columns over a table, by what they were made of. Shapes: columns (n,) or (k, n)."""

    def __init__(self, changes: RowJournal) -> None:
        self._changes = changes
        self._known: BoundedCache[Hashable, _Column] = BoundedCache(MAX_BYTES)

    def column(
        self,
        key: Hashable,
        table: T,
        make: Callable[[T], NDArray[Any]],
        of_row: Callable[[T], Callable[[int], Any]],
    ) -> NDArray[Any]:
        """The column, brought up to date by a function that `of_row` gives: what `make` says of one row.

        It is not to be written to, and changes with the next rows that do.
        """
        known, end = self._known.get(key), self._changes.end
        if known is None:
            known = _Column(make(table), of_row(table), end)
            self._known.put(key, known, known.values.nbytes + size_of(key))
        elif known.position != end:
            changed = self._changes.since(known.position)
            rows = None if changed is None else set(changed.tolist())
            known.position = end
            if rows is None or len(rows) > max(MANY, known.values.shape[-1] // SHARE):
                known.values[...] = make(table)
            else:
                known.follow(rows)
        return known.values

    def clear(self) -> None:
        """Forget all columns: rows may be others now."""
        self._known.clear()


class _Column:
    """A column, how it follows changes, and up to where it has followed them."""

    __slots__ = ("_cells", "_of_row", "position", "values")

    def __init__(self, values: NDArray[Any], of_row: Callable[[int], Any], position: int) -> None:
        self.values = values
        self.position = position
        self._of_row = of_row
        self._cells = [part.data for part in np.atleast_2d(values)]

    def follow(self, rows: Iterable[int]) -> None:
        """Make these rows again."""
        cells, of_row = self._cells, self._of_row
        if self.values.ndim == 1:
            for row in rows:
                cells[0][row] = of_row(row)
            return
        for row in rows:
            for cell, value in zip(cells, of_row(row), strict=True):
                cell[row] = value
