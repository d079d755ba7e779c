"""The ladder: the highest total and the rows that have it, whatever moved."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.evaluation import ladder as ladder_module
from berth.evaluation.ladder import LEFT_OUT, Ladder
from tests.hostile.work import growth

TOTALS = st.one_of(st.integers(0, 4), st.integers(0, 400), st.just(LEFT_OUT))


@given(
    totals=st.lists(TOTALS, min_size=1, max_size=40),
    moves=st.lists(st.tuples(st.integers(0, 39), TOTALS), max_size=60),
    looked_at=st.sampled_from((1, 3, 256)),
)
def test_the_best_rows_are_those_of_a_search(totals, moves, looked_at):
    """After each move, the rows on the top rung are all that have the highest total, in order."""
    column, ladder = np.array(totals, dtype=np.int64), Ladder()
    before = ladder_module.LOOKED_AT
    ladder_module.LOOKED_AT = looked_at
    try:
        for place, total in [(0, totals[0]), *moves]:
            row = place % column.size
            ladder.move(row, column.item(row), total)
            column[row] = total
            if column.max() > LEFT_OUT:
                best, rows = ladder.best(column)
                assert (column.max(), np.flatnonzero(column == column.max()).tolist()) == (best, list(rows))
    finally:
        ladder_module.LOOKED_AT = before


def test_totals_that_are_all_others_make_another_ladder():
    ladder, column = Ladder(), np.array([3, 5, 5])
    for _ in range(2):
        ladder.best(column)
    ladder.clear()

    assert (9, [0]) == (ladder.best(np.array([9, 1, 1]))[0], list(ladder.best(np.array([9, 1, 1]))[1]))


def test_a_move_costs_the_same_on_any_number_of_rows():
    """Calls of functions for a row that comes down from the top and the next best one, by number of rows."""

    def made(n):
        ladder, column = Ladder(), np.arange(n, dtype=np.int64)
        for _ in range(2):
            ladder.best(column)

        def work():
            for row in range(n - 1, n - 101, -1):
                ladder.move(row, row, 0)
                column[row] = 0
                ladder.best(column)

        return work

    assert growth(made, 1000, 10) <= 0.11
