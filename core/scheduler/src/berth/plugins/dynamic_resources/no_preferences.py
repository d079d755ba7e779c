"""Scores of pods that name no alternatives: nothing for any node."""

from functools import lru_cache

import numpy as np

from berth.framework.interface import Scores
from berth.snapshot.columns.growing import Rows


@lru_cache(maxsize=64)
def nothing(n: int) -> Scores:
    """No preference for any of so many nodes: one read-only array for each size."""
    scores = np.zeros(n, dtype=np.int64)
    scores.flags.writeable = False
    return scores


def no_preference(row: int) -> int:
    """Return the score of a row."""
    del row
    return 0


def no_preferences(rows: Rows) -> Scores:
    """Return the scores of rows. Shapes: rows and result (k,)."""
    return nothing(rows.size)
