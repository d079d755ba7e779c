"""Columns of labels: for each key that was asked about, the number of each node's value.

A column is made at the first question about its key, from the node objects. One that many nodes have a value
in is kept up to date after that. One that few nodes have a value in is made again from those few when it is
asked for after a change, and is among those that go where they take too much memory together. A key that no
node has has no column: every such key is answered by one that is empty.

A rule is then asked once for each distinct value and spread over the nodes as an array.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from berth.objects.label_selector import Requirement, parse_int
from berth.objects.node import Node
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.flag_columns import FlagColumns
from berth.snapshot.columns.growing import Ints, Mask, Rows, grown

MISSING = -1
MAX_SPARSE_BYTES = 8 << 20
MANY_LABELS = 64
"""Of a node with more labels, columns are looked up among the labels rather than labels among the columns."""
_NOWHERE = np.full(1, MISSING, dtype=np.int64)
_BOTH = np.array([False, True])


class LabelColumn:
    """One key's values over the nodes.

    A value that no row has any more gives its number to the next new one; until then it is in `values` as an
    empty text, and not in `index`.

    Shapes: ids int64 (capacity,), an index into `values`, -1 where the node has no such label.
    """

    __slots__ = ("_free", "_holders", "_numbers", "ids", "index", "values")

    def __init__(self, capacity: int) -> None:
        self.ids: Ints = np.broadcast_to(_NOWHERE, (capacity,))
        self.values: list[str] = []
        self.index: dict[str, int] = {}
        self._holders: list[int] = []
        self._free: list[int] = []
        self._numbers: tuple[Ints, Mask] | None = None

    def fill(self, rows: Rows, values: Sequence[str]) -> None:
        """Take over the values of these rows into a column that is new."""
        self.values = [*dict.fromkeys(values)]
        self.index = {value: number for number, value in enumerate(self.values)}
        numbers = np.fromiter(map(self.index.__getitem__, values), dtype=np.int64, count=len(values))
        self._holders = np.bincount(numbers, minlength=len(self.values)).tolist()
        self.ids = np.full(self.ids.shape, MISSING, dtype=np.int64)
        self.ids[rows] = numbers

    def set_row(self, row: int, value: str | None) -> None:
        """Write one node's value."""
        before = int(self.ids[row])
        self.ids[row] = MISSING if value is None else self._taken(value)
        if before == MISSING:
            return
        self._holders[before] -= 1
        if not self._holders[before]:
            del self.index[self.values[before]]
            self.values[before] = ""
            self._free.append(before)

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that has no value."""
        self.ids[target], self.ids[source] = self.ids[source], MISSING

    def _taken(self, value: str) -> int:
        """The number of a value that one more row has."""
        number = self.index.get(value)
        if number is None:
            number = self.index[value] = self._free.pop() if self._free else len(self.values)
            self._numbers = None
            if number == len(self.values):
                self.values.append(value)
                self._holders.append(0)
            self.values[number] = value
        self._holders[number] += 1
        return number

    def matching(self, requirement: Requirement, n: int) -> Mask:
        """Where the requirement holds, not to be written to.

        Shapes: result bool (n,). Cost: one step in Python for each value the requirement names.
        """
        if not self.index:
            return _everywhere(n, holds=requirement.operator in ("NotIn", "DoesNotExist"))
        ids = self.ids[:n]
        mask: Mask
        match requirement.operator:
            case "In":
                mask = self._among(ids, requirement.values)
            case "NotIn":
                mask = ~self._among(ids, requirement.values)
            case "Exists":
                mask = ids != MISSING
            case "DoesNotExist":
                mask = ids == MISSING
            case _:
                mask = self._compared(ids, requirement)
        return mask

    def _among(self, ids: Ints, values: Sequence[str]) -> Mask:
        wanted = [self.index[value] for value in values if value in self.index]
        if len(wanted) == 1:
            single: Mask = ids == wanted[0]
            return single
        allowed = np.zeros(len(self.values) + 1, dtype=bool)  # the last place is read by MISSING
        allowed[wanted] = True
        result: Mask = allowed[ids]
        return result

    def _compared(self, ids: Ints, requirement: Requirement) -> Mask:
        bound = parse_int(requirement.values[0])
        if bound is None:
            return _everywhere(ids.size, holds=False)
        numbers, numeric = self._parsed()
        beyond = numbers > bound if requirement.operator == "Gt" else numbers < bound
        result: Mask = (beyond & numeric)[ids]
        return result

    def _parsed(self) -> tuple[Ints, Mask]:
        if self._numbers is None:
            parsed = [parse_int(value) for value in self.values]
            numbers = np.array([*(p or 0 for p in parsed), 0], dtype=np.int64)
            self._numbers = numbers, np.array([*(p is not None for p in parsed), False])
        return self._numbers


class LabelColumns:
    """The columns by key, made on demand."""

    def __init__(self, capacity: int, nodes: list[Node]) -> None:
        self._capacity = capacity
        self._nodes = nodes
        self._keys = FlagColumns[str](capacity)
        self._columns: dict[str, LabelColumn] = {}
        self._sparse: BoundedCache[str, LabelColumn] = BoundedCache(MAX_SPARSE_BYTES)
        self._empty = LabelColumn(capacity)

    @property
    def keys(self) -> Collection[str]:
        """The keys that some node has."""
        return self._keys.things

    @property
    def keys_version(self) -> int:
        """Grows when a node has a key that none had, or none has one any more."""
        return self._keys.things_version

    def column(self, key: str) -> LabelColumn:
        """The key's column. Two calls give the same numbers for as long as no node's labels change."""
        known = self._columns.get(key)
        if known is not None:
            return known
        rows = self._keys.rows(key)
        if rows is None:
            return self._empty
        if rows.flags is not None:
            return self._columns.setdefault(key, self._made(key, rows.rows()))
        known = self._sparse.get(key)
        if known is None:
            known = self._made(key, rows.rows())
            self._sparse.put(key, known, known.ids.nbytes + rows.count * 200)
        return known

    def _made(self, key: str, rows: Rows) -> LabelColumn:
        column = LabelColumn(self._capacity)
        column.fill(rows, [self._nodes[row].metadata.labels[key] for row in rows.tolist()])
        return column

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._capacity = capacity
        self._keys.grow(capacity)
        self._sparse.clear()
        self._empty = LabelColumn(capacity)
        for key, column in [*self._columns.items()]:
            column.ids = grown(column.ids, capacity, MISSING)
            self._settle(key)

    def set_row(self, row: int, labels: dict[str, str]) -> None:
        """Take over one node's labels."""
        before = self._keys.on(row)
        self._keys.set_row(row, labels)
        self._write(row, before, {})
        self._write(row, labels, labels)

    def drop_row(self, row: int) -> None:
        """Forget a removed node's labels."""
        before = self._keys.on(row)
        self._keys.drop_row(row)
        self._write(row, before, {})

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that was dropped."""
        self._keys.move_row(source, target)
        for key in self._keys.on(target):
            self._sparse.drop(key)
            if key in self._columns:
                self._columns[key].move_row(source, target)

    def _write(self, row: int, keys: Collection[str], labels: Mapping[str, str]) -> None:
        if not (self._columns or self._sparse):
            return
        many = len(keys) > MANY_LABELS
        for key in [key for key in list(self._sparse) if key in keys] if many else keys:
            self._sparse.drop(key)
        columns = self._columns
        for key in [key for key in columns if key in keys] if many else [k for k in keys if k in columns]:
            columns[key].set_row(row, labels.get(key))
            self._settle(key)

    def _settle(self, key: str) -> None:
        """Give up a column that few nodes have a value in by now."""
        rows = self._keys.rows(key)
        if rows is None or rows.flags is None:
            del self._columns[key]


def _everywhere(n: int, *, holds: bool) -> Mask:
    """One answer for all nodes, in no more memory than one takes."""
    return np.broadcast_to(_BOTH[int(holds)], (n,))
