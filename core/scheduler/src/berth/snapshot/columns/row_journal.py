"""Which rows changed, in order, for any number of readers who each ask from where they left off."""

import numpy as np

from berth.snapshot.columns.growing import Rows
from berth.snapshot.journal import KEPT


class RowJournal:
    """The last changes of rows; a reader that lags behind what is kept has to start from the whole again."""

    __slots__ = ("_cells", "_ring", "end")

    def __init__(self, kept: int = KEPT) -> None:
        self._ring: Rows = np.zeros(kept, dtype=np.intp)
        self._cells = self._ring.data
        self.end = 0

    def note(self, row: int) -> None:
        """Add a change."""
        self._cells[self.end % len(self._cells)] = row
        self.end += 1

    def since(self, position: int) -> Rows | None:
        """The rows that changed since the journal ended there, each as often as it did; not to be kept.

        None where some of the changes are gone. Shapes: result intp (k,).
        """
        ring, kept = self._ring, len(self._cells)
        missed = self.end - position
        if missed > kept:
            return None
        start = position % kept
        if start + missed <= kept:
            return ring[start : start + missed]
        return np.concatenate((ring[start:], ring[: self.end % kept]))
