"""The rows on which plugins are to be run again, and the journals that say which these are.

Dirty rows are few, as a set, many, as an array, or all.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from berth.snapshot.columns.growing import NO_ROWS, Rows
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot

FEW = 32
"""Up to so many rows are filtered and scored one at a time, where all plugins have a scalar form."""
MANY = 64
"""Up to max(MANY, n / SHARE) dirty rows are evaluated as a table of their own.

Where more are dirty, plugins whose results depend on pods are run on all rows."""
SHARE = 4


class DirtyRows:
    """Each row once; where there are `many`, in ascending order, `few` is empty. Shapes: many intp (k,)."""

    __slots__ = ("every", "few", "many")

    def __init__(self) -> None:
        self.few: set[int] = set()
        self.many: Rows | None = None
        self.every = False
        """Whether all rows are dirty."""

    def __bool__(self) -> bool:
        return bool(self.few) or self.many is not None or self.every

    def clear(self) -> None:
        """No row is dirty."""
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
        """Move all rows of `others` here; n is the number of rows of the table."""
        if not self:
            self.few, self.many, self.every = others.few, others.many, others.every
        elif others.every:
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


class ChangedRows:
    """Follows the node set and some journals of rows, from now on."""

    __slots__ = ("_positions", "_static")

    def __init__(self, nodes: Snapshot, journals: Sequence[RowJournal]) -> None:
        self._static = nodes.static_generation
        self._positions = [(journal, journal.end) for journal in journals]

    def take(self, nodes: Snapshot) -> Rows | None:
        """The rows that changed since the last call, some of them named twice.

        None where all rows may have changed, or a journal no longer reaches back.
        Shapes: result intp (k,), not to be kept.
        """
        static, self._static = self._static, nodes.static_generation
        changed: Rows | None = NO_ROWS
        for i, (journal, position) in enumerate(self._positions):
            if journal.end == position:
                continue
            self._positions[i] = journal, journal.end
            rows = journal.since(position)
            if rows is None or changed is None:
                changed = None
            else:
                changed = np.concatenate((changed, rows)) if changed.size else rows
        return changed if static == nodes.static_generation else None
