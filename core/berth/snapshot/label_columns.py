"""Columns of labels: for each key that somebody asked about, the number of each node's value.

A column is made at the first question about its key, from the node objects, and kept up to date after that.
A rule is then asked once for each distinct value and spread over the nodes as an array.
"""

from collections.abc import Sequence

import numpy as np

from berth.objects.label_selector import Requirement, parse_int
from berth.objects.node import Node
from berth.snapshot.columns import Ints, Mask, grown

MISSING = -1


class LabelColumn:
    """One key's values over the nodes.

    Shapes: ids int64 (capacity,), an index into `values`, -1 where the node has no such label.
    """

    def __init__(self, capacity: int) -> None:
        self.ids: Ints = np.full(capacity, MISSING, dtype=np.int64)
        self.values: list[str] = []
        self.index: dict[str, int] = {}
        self._numbers: tuple[Ints, Mask] | None = None

    def set_row(self, row: int, value: str | None) -> None:
        """Write one node's value."""
        self.ids[row] = MISSING if value is None else self.id_of(value)

    def id_of(self, value: str) -> int:
        """The number of a value, given out at its first sight."""
        known = self.index.get(value)
        if known is None:
            known = self.index[value] = len(self.values)
            self.values.append(value)
            self._numbers = None
        return known

    def matching(self, requirement: Requirement, n: int) -> Mask:
        """Where the requirement holds.

        Shapes: result bool (n,). Cost: one step in Python for each value the requirement names.
        """
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
            return np.zeros(ids.shape, dtype=bool)
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
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str) -> LabelColumn:
        """The key's column."""
        known = self._columns.get(key)
        if known is None:
            known = self._columns[key] = LabelColumn(self._capacity)
            for row, node in enumerate(self._nodes):
                known.set_row(row, node.metadata.labels.get(key))
        return known

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._capacity = capacity
        for column in self._columns.values():
            column.ids = grown(column.ids, capacity, MISSING)

    def set_row(self, row: int, node: Node) -> None:
        """Take over one node's labels."""
        for key, column in self._columns.items():
            column.set_row(row, node.metadata.labels.get(key))

    def move_row(self, source: int, target: int) -> None:
        """Copy a row over another."""
        for column in self._columns.values():
            column.ids[target] = column.ids[source]
