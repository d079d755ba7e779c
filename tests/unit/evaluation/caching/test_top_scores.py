"""Top scores: the highest total and the rows that have it, whatever moved."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.evaluation.caching import top_scores
from berth.evaluation.caching.top_scores import LEFT_OUT, TopScores
from tests.hostile.work import growth

TOTALS = st.one_of(st.integers(0, 4), st.integers(0, 400), st.just(LEFT_OUT))


@given(
    totals=st.lists(TOTALS, min_size=1, max_size=40),
    moves=st.lists(st.tuples(st.integers(0, 39), TOTALS), max_size=60),
    looked_at=st.sampled_from((1, 3, 256)),
)
def test_the_best_rows_are_those_of_a_search(totals, moves, looked_at):
    """After each move, the best rows are all that have the highest total, in order."""
    column, scores = np.array(totals, dtype=np.int64), TopScores()
    before = top_scores.LOOKED_AT
    top_scores.LOOKED_AT = looked_at
    try:
        for place, total in [(0, totals[0]), *moves]:
            row = place % column.size
            scores.move(row, column.item(row), total)
            column[row] = total
            if column.max() > LEFT_OUT:
                best, rows = scores.best(column)
                assert (column.max(), np.flatnonzero(column == column.max()).tolist()) == (best, list(rows))
    finally:
        top_scores.LOOKED_AT = before


def test_totals_that_are_all_others_are_read_anew():
    scores, column = TopScores(), np.array([3, 5, 5])
    for _ in range(2):
        scores.best(column)
    scores.clear()

    assert (9, [0]) == (scores.best(np.array([9, 1, 1]))[0], list(scores.best(np.array([9, 1, 1]))[1]))


def test_a_move_costs_the_same_on_any_number_of_rows():
    """Calls of functions for a row that comes down from the top and the next best one, by number of rows."""

    def made(n):
        scores, column = TopScores(), np.arange(n, dtype=np.int64)
        for _ in range(2):
            scores.best(column)

        def work():
            for row in range(n - 1, n - 101, -1):
                scores.move(row, row, 0)
                column[row] = 0
                scores.best(column)

        return work

    assert growth(made, 1000, 10) <= 0.11
