"""Rows that are to be asked about: a few by their numbers, many as an array, or all there are."""

from collections.abc import Iterable

import numpy as np

from berth.snapshot.columns import Rows

FEW = 32
"""So many rows are asked about one by one where all plugins can do that."""
MANY = 64
"""So many dirty rows are picked out of the table in any cluster, and in a large one, one row in `SHARE`.

Where more are dirty, plugins whose answers pods change are asked about the whole table."""
SHARE = 4


class DirtyRows:
    """Each row once; where there are `many`, in ascending order, `few` is empty. Shapes: many intp (k,)."""

    __slots__ = ("every", "few", "many")

    def __init__(self) -> None:
        self.few: set[int] = set()
        self.many: Rows | None = None
        self.every = False
        """Whether these are so many that all rows are asked about."""

    def __bool__(self) -> bool:
        return bool(self.few) or self.many is not None or self.every

    def clear(self) -> None:
        """There are none any more."""
        self.few, self.many, self.every = set(), None, False

    def all_of(self) -> None:
        """All rows are dirty."""
        self.few, self.many, self.every = set(), None, True

    def add(self, rows: Iterable[int], n: int) -> None:
        """Add a few of the table's n rows."""
        self.few.update(rows)
        if len(self.few) > FEW or self.many is not None:
            few, self.few = self.few, set()
            self._merge(np.fromiter(few, dtype=np.intp, count=len(few)), n)

    def add_many(self, rows: Rows, n: int) -> None:
        """Add some of the table's n rows, which may be named twice. Shapes: rows intp (k,)."""
        if rows.size <= FEW:
            self.add(rows.tolist(), n)
            return
        few, self.few = self.few, set()
        self._merge(np.concatenate((rows, [*few])) if few else rows, n)

    def _merge(self, rows: Rows, n: int) -> None:
        if self.every:
            return
        there = np.zeros(n, dtype=bool)
        there[rows] = True
        if self.many is not None:
            there[self.many] = True
        many = there.nonzero()[0]
        if many.size > max(MANY, n // SHARE):
            self.all_of()
        elif many.size > FEW:
            self.many = many
        else:
            self.few, self.many = set(many.tolist()), None

    def take(self, others: "DirtyRows", n: int) -> None:
        """Add all of those, of a table of n rows; there are none there any more."""
        if others.every:
            self.all_of()
        elif others.many is not None:
            self.add_many(others.many, n)
        elif others.few:
            self.add(others.few, n)
        others.clear()

    def rows(self) -> Rows:
        """Their numbers in ascending order, unless all are dirty. Shapes: result intp (k,)."""
        return rows_of(self.few) if self.many is None else self.many


def rows_of(numbers: set[int]) -> Rows:
    """The rows in ascending order. Shapes: result intp (k,)."""
    rows = np.fromiter(numbers, dtype=np.intp, count=len(numbers))
    rows.sort()
    return rows
