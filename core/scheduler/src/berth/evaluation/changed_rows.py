"""Which rows changed since an answer was given: what a cached answer of any plugin is invalidated by."""

from collections.abc import Sequence

import numpy as np

from berth.snapshot.columns.growing import NO_ROWS, Rows
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot


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
