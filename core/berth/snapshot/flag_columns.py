"""Boolean columns, one for each distinct thing that nodes have: a taint, a label's key, an image."""

from collections.abc import Collection, Iterable
from typing import Generic, TypeVar

import numpy as np

from berth.snapshot.columns import Ints, Mask, Rows, grown

T = TypeVar("T")

MANY = 16
"""A thing on more than one row in so many has a column, until it is on fewer than a quarter of those."""

MOST_IN_BYTE = 255
_NO_ROWS = np.zeros(0, dtype=np.intp)


class RowSet:
    """The rows that have one thing: numbered while they are few, a column of flags once they are many.

    So memory grows with what nodes have, not with what there is to have times the number of nodes.

    Shapes: flags bool (capacity,).
    """

    __slots__ = ("_listed", "count", "few", "flags")

    def __init__(self) -> None:
        self.count = 0
        self.few: set[int] = set()
        self.flags: Mask | None = None
        self._listed: Rows | None = None

    def add(self, row: int, capacity: int) -> None:
        """Put in a row that is not in."""
        self.count += 1
        self._listed = None
        if self.flags is not None:
            self.flags[row] = True
            return
        self.few.add(row)
        if len(self.few) * MANY > capacity:
            self.flags = self._spread(capacity)
            self.few = set()

    def discard(self, row: int, capacity: int) -> None:
        """Take out a row that is in."""
        self.count -= 1
        self._listed = None
        if self.flags is None:
            self.few.discard(row)
            return
        self.flags[row] = False
        self.settle(capacity)

    def settle(self, capacity: int) -> None:
        """Give up the column where it has become too sparse."""
        if self.flags is not None and self.count * MANY * 4 < capacity:
            self.few = set(np.flatnonzero(self.flags).tolist())
            self.flags = None

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        if self.flags is not None:
            self.flags = grown(self.flags, capacity)
            self.settle(capacity)

    def mark(self, mask: Mask) -> None:
        """Set the mask on these rows. Shapes: mask bool (n,)."""
        if self.flags is not None:
            np.logical_or(mask, self.flags[: mask.size], out=mask)
        else:
            mask[self.rows()] = True

    def column(self, n: int) -> Mask:
        """Which of the first n rows are in, not to be written to. Shapes: result bool (n,)."""
        return self.flags[:n] if self.flags is not None else self._spread(n)

    def rows(self) -> Rows:
        """The rows in ascending order, not to be written to. Shapes: result intp (k,)."""
        if self.flags is not None:
            return np.flatnonzero(self.flags)
        if self._listed is None:
            self._listed = np.array(sorted(self.few), dtype=np.intp)
        return self._listed

    def _spread(self, n: int) -> Mask:
        flags = np.zeros(n, dtype=bool)
        flags[self.rows()] = True
        return flags


class FlagColumns(Generic[T]):
    """Which nodes have which of a set of distinct things; a thing goes with the last node that has it."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: dict[T, RowSet] = {}
        self._on_row: dict[int, Collection[T]] = {}

    @property
    def things(self) -> Collection[T]:
        """The distinct things that some node has."""
        return self._rows.keys()

    def on(self, row: int) -> Collection[T]:
        """What one node has."""
        return self._on_row.get(row, ())

    def rows(self, thing: T) -> RowSet | None:
        """The rows that have it; None where none has."""
        return self._rows.get(thing)

    def holders(self, thing: T) -> int:
        """How many nodes have it."""
        rows = self._rows.get(thing)
        return 0 if rows is None else rows.count

    def set_row(self, row: int, things: Collection[T]) -> None:
        """Say what one node has: distinct things, in a collection that stays as it is."""
        self.drop_row(row)
        if not things:
            return
        self._on_row[row] = things
        for thing in things:
            rows = self._rows.get(thing)
            if rows is None:
                rows = self._rows[thing] = RowSet()
            rows.add(row, self._capacity)

    def drop_row(self, row: int) -> None:
        """Forget what a node has."""
        gone = self._on_row.pop(row, ())
        for thing in gone:
            rows = self._rows[thing]
            rows.discard(row, self._capacity)
            if not rows.count:
                del self._rows[thing]
        if len(gone) > len(self._rows):
            self._rows = dict(self._rows)  # a dictionary that had many more keys keeps their room otherwise

    def column(self, thing: T, n: int) -> Mask | None:
        """Which of the first n nodes have it, not to be written to; None where none has."""
        rows = self._rows.get(thing)
        return None if rows is None else rows.column(n)

    def any_of(self, things: Iterable[T], n: int) -> Mask:
        """Which of the first n nodes have any of them. Shapes: result bool (n,)."""
        mask = np.zeros(n, dtype=bool)
        for thing in things:
            if (rows := self._rows.get(thing)) is not None:
                rows.mark(mask)
        return mask

    def count_of(self, things: Iterable[T], n: int) -> Ints:
        """How many of them each of the first n nodes has. Shapes: result int64 (n,)."""
        found = [rows for thing in things if (rows := self._rows.get(thing)) is not None]
        few = [rows.rows() for rows in found if rows.flags is None]
        counts: Ints = np.bincount(np.concatenate([_NO_ROWS, *few]), minlength=n)
        columns = [rows.flags[:n].view(np.uint8) for rows in found if rows.flags is not None]
        for begin in range(0, len(columns), MOST_IN_BYTE):
            # Bytes add up several times as fast as flags are turned into whole numbers.
            some = np.zeros(n, dtype=np.uint8)
            for column in columns[begin : begin + MOST_IN_BYTE]:
                some += column
            counts += some
        return counts

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._capacity = capacity
        for rows in self._rows.values():
            rows.grow(capacity)

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that was dropped."""
        things = self._on_row.pop(source, ())
        if not things:
            return
        self._on_row[target] = things
        for thing in things:
            self._rows[thing].discard(source, self._capacity)
            self._rows[thing].add(target, self._capacity)
