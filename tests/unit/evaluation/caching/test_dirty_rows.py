"""Dirty rows are the rows that were added, however many there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.evaluation.caching.dirty_rows import FEW, MANY, SHARE, DirtyRows

N = 1000
ROWS = st.sets(st.integers(0, N - 1), max_size=2 * FEW)


def held(dirty):
    """All rows that are dirty."""
    return set(range(N)) if dirty.every else set(dirty.rows().tolist())


@given(st.lists(st.tuples(st.booleans(), ROWS), max_size=8))
def test_all_that_were_added(additions):
    """One by one or many at once, each row is there once, in ascending order, or all rows are."""
    dirty, added = DirtyRows(), set()
    for together, rows in additions:
        if together:
            dirty.add_many(np.array([*rows, *rows], dtype=np.intp), N)
        else:
            dirty.add(rows, N)
        added |= rows

    assert bool(dirty) == bool(added)
    if dirty.every:
        assert len(added) > max(MANY, N // SHARE)
    else:
        assert sorted(added) == dirty.rows().tolist()
        assert (dirty.many is not None) == (len(added) > FEW)


@pytest.mark.parametrize("count", [1, FEW + 1, N // SHARE + 1])
@pytest.mark.parametrize("before", [0, 1, FEW + 1, N // SHARE + 1])
def test_rows_that_are_taken_over(before, count):
    """They are there, beside those that were, and no longer where they come from."""
    dirty, others = DirtyRows(), DirtyRows()
    dirty.add(range(N - before, N), N)
    others.add(range(count), N)
    together = held(dirty) | held(others)
    dirty.take(others, N)

    assert together <= held(dirty)
    assert not others
