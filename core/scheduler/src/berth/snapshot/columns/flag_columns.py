"""Boolean columns, one for each distinct thing that nodes have: a taint, a label's key, an image."""

from array import array
from bisect import bisect_left, insort
from collections.abc import Collection
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from berth.snapshot.columns.growing import Ints, Mask, Rows, grown

T = TypeVar("T")

MANY = 16
"""A thing on more than one row in so many has a column, until it is on fewer than a quarter of those."""

MAX_IN_BYTE = 255
_NUMBERS = "i"
"""How few rows are kept: four bytes each, where a set takes up to eighty."""


class RowSet:
    """The rows that have one thing: numbered while they are few, a column of flags once they are many.

    So memory grows with what nodes have, not with what there is to have times the number of nodes.

    Shapes: few int32 (k,), ascending; flags bool (capacity,).
    """

    __slots__ = ("count", "few", "flags")

    def __init__(self, first: int) -> None:
        self.count = 1
        self.few: array[int] = array(_NUMBERS, (first,))
        self.flags: Mask | None = None

    def add(self, row: int, capacity: int) -> None:
        """Put in a row that is not in."""
        self.count += 1
        if self.flags is not None:
            self.flags[row] = True
            return
        insort(self.few, row)
        if len(self.few) * MANY > capacity:
            self.flags = self._spread(capacity)
            self.few = array(_NUMBERS)

    def discard(self, row: int, capacity: int) -> None:
        """Take out a row that is in."""
        self.count -= 1
        if self.flags is None:
            del self.few[bisect_left(self.few, row)]
            return
        self.flags[row] = False
        self.settle(capacity)

    def settle(self, capacity: int) -> None:
        """Give up the column where it has become too sparse."""
        if self.flags is not None and self.count * MANY * 4 < capacity:
            self.few = array(_NUMBERS, np.flatnonzero(self.flags).tolist())
            self.flags = None

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        if self.flags is not None:
            self.flags = grown(self.flags, capacity)
            self.settle(capacity)

    def column(self, n: int) -> Mask:
        """Which of the first n rows are in, not to be written to. Shapes: result bool (n,)."""
        return self.flags[:n] if self.flags is not None else self._spread(n)

    def rows(self) -> Rows:
        """The rows in ascending order, not to be written to. Shapes: result intp (k,)."""
        if self.flags is not None:
            return np.flatnonzero(self.flags)
        return np.array(self.few, dtype=np.intp)

    def _spread(self, n: int) -> Mask:
        flags = np.zeros(n, dtype=bool)
        flags[self.rows()] = True
        return flags


class _Few(NamedTuple):
    """The things that few rows have: their numbers, and the number and the row of each time that one is had.

    Shapes: of, rows intp (k,).
    """

    numbers: dict[Any, int]
    of: Rows
    rows: Rows

    def rows_with(self, things: Collection[Any]) -> Rows:
        """The rows that have any of these things, as often as they have one."""
        wanted = np.zeros(len(self.numbers), dtype=bool)
        wanted[[self.numbers[thing] for thing in things if thing in self.numbers]] = True
        return self.rows[wanted[self.of]]


class FlagColumns(Generic[T]):
    """Which nodes have which of a set of distinct things; a thing goes with the last node that has it.

    A thing that one node has is kept as the number of its row: one node may have hundreds of thousands.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: dict[T, RowSet | int] = {}
        self._on_row: dict[int, Collection[T]] = {}
        self._few: _Few | None = None
        self.things_version = 0
        """Grows when a node has a thing that none had, or none has one any more."""

    @property
    def things(self) -> Collection[T]:
        """The distinct things that some node has."""
        return self._rows.keys()

    def on(self, row: int) -> Collection[T]:
        """What one node has."""
        return self._on_row.get(row, ())

    def rows(self, thing: T) -> RowSet | None:
        """The rows that have it, not to be changed; None where none has."""
        rows = self._rows.get(thing)
        return RowSet(rows) if isinstance(rows, int) else rows

    def holders(self, thing: T) -> int:
        """How many nodes have it."""
        rows = self._rows.get(thing)
        if isinstance(rows, int):
            return 1
        return 0 if rows is None else rows.count

    def set_row(self, row: int, things: Collection[T]) -> None:
        """Say what one node has: distinct things, in a collection that stays as it is."""
        known = self._on_row.get(row)
        if things:
            self._on_row[row] = things
        elif known:
            del self._on_row[row]
        if not known:
            self._add(things, row)
            return
        before, after = dict.fromkeys(known), dict.fromkeys(things)
        self._add([thing for thing in after if thing not in before], row)
        self._discard([thing for thing in before if thing not in after], row)

    def _add(self, came: Collection[T], row: int) -> None:
        if not came:
            return
        self._few = None
        known, capacity = self._rows, self._capacity
        before = len(known)
        for thing in came:
            if thing not in known:
                known[thing] = row
                continue
            rows = known[thing]
            if isinstance(rows, int):
                rows = known[thing] = RowSet(rows)
            rows.add(row, capacity)
        if len(known) > before:
            self.things_version += 1

    def drop_row(self, row: int) -> None:
        """Forget what a node has."""
        self._discard(self._on_row.pop(row, ()), row)

    def _discard(self, gone: Collection[T], row: int) -> None:
        if gone:
            self._few = None
        for thing in gone:
            rows = self._rows[thing]
            if not isinstance(rows, int):
                rows.discard(row, self._capacity)
                if rows.count:
                    continue
            del self._rows[thing]
            self.things_version += 1
        if len(gone) > len(self._rows):
            self._rows = dict(self._rows)  # a dictionary that had many more keys keeps their room otherwise

    def column(self, thing: T, n: int) -> Mask | None:
        """Which of the first n nodes have it, not to be written to; None where none has."""
        rows = self.rows(thing)
        return None if rows is None else rows.column(n)

    def any_of(self, things: Collection[T], n: int) -> Mask:
        """Which of the first n nodes have any of them. Shapes: result bool (n,)."""
        mask = np.zeros(n, dtype=bool)
        found = [self._rows[thing] for thing in things if thing in self._rows]
        few = chain.from_iterable([(rows,) if isinstance(rows, int) else rows.few for rows in found])
        mask[np.fromiter(few, dtype=np.intp)] = True
        for column in self._flags(things, n):
            mask |= column
        return mask

    def count_of(self, things: Collection[T], n: int) -> Ints:
        """How many of them each of the first n nodes has; each is named once. Shapes: result int64 (n,)."""
        if not things:
            return np.zeros(n, dtype=np.int64)
        counts: Ints = np.bincount(self._listed().rows_with(things), minlength=n)
        columns = [column.view(np.uint8) for column in self._flags(things, n)]
        for begin in range(0, len(columns), MAX_IN_BYTE):
            # Bytes add up several times as fast as flags are turned into whole numbers.
            some = np.zeros(n, dtype=np.uint8)
            for column in columns[begin : begin + MAX_IN_BYTE]:
                some += column
            counts += some
        return counts

    def _flags(self, things: Collection[T], n: int) -> list[Mask]:
        found = [self._rows.get(thing) for thing in things]
        return [rows.flags[:n] for rows in found if isinstance(rows, RowSet) and rows.flags is not None]

    def _listed(self) -> _Few:
        """The things that few rows have, listed anew once a node has others."""
        if self._few is None:
            one = {thing: row for thing, row in self._rows.items() if isinstance(row, int)}
            few = {
                thing: rows.rows()
                for thing, rows in self._rows.items()
                if isinstance(rows, RowSet) and rows.flags is None
            }
            numbers = {thing: number for number, thing in enumerate(chain(one, few))}
            of = np.repeat(np.arange(len(numbers)), [1] * len(one) + [rows.size for rows in few.values()])
            rows_of_one = np.fromiter(one.values(), np.intp, len(one))
            self._few = _Few(numbers, of, np.concatenate([rows_of_one, *few.values()]))
        return self._few

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._capacity = capacity
        self._few = None
        for rows in self._rows.values():
            if isinstance(rows, RowSet):
                rows.grow(capacity)

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that was dropped."""
        things = self._on_row.pop(source, ())
        if not things:
            return
        self._few = None
        self._on_row[target] = things
        for thing in things:
            rows = self._rows[thing]
            if isinstance(rows, int):
                self._rows[thing] = target
            else:
                rows.discard(source, self._capacity)
                rows.add(target, self._capacity)
