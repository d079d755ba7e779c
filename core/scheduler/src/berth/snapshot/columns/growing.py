"""Columns that grow: arrays with room for more rows than are in use.

Every group of columns answers the same three calls of the snapshot: `grow` to a capacity, `set_row` from a
NodeInfo, `move_row` when the last row fills the hole that a removed node left.
"""

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Ints = NDArray[np.int64]


class ByRow(Protocol):
    """A whole number for each row; a memoryview of a column is one, and the fastest way to single values."""

    def __getitem__(self, row: int, /) -> int:
        """The number of one row, as a Python int."""


def grown(array: NDArray[Any], capacity: int, fill: int = 0) -> NDArray[Any]:
    """The array with its last axis lengthened to `capacity`, new places filled."""
    wider = np.full((*array.shape[:-1], capacity), fill, dtype=array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider


def rows_where(mask: Mask) -> Rows:
    """The rows where the mask holds, not to be written to: where it holds everywhere, the search is skipped.

    Shapes: mask bool (n,); result intp (k,).
    """
    return every_row(mask.size) if np.count_nonzero(mask) == mask.size else mask.nonzero()[0]


NO_ROWS: Rows = np.empty(0, dtype=np.intp)


@lru_cache(maxsize=8)
def every_row(n: int) -> Rows:
    """The rows of a table of n nodes, not to be written to. Shapes: result intp (n,)."""
    rows = np.arange(n, dtype=np.intp)
    rows.flags.writeable = False
    return rows
