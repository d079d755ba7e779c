"""What was decided, beside what a plugin in shadow would have made of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.out_of_tree.shadowing.comparison import (
    LATEST,
    ObservedChoice,
    ShadowComparison,
    ShadowOutcome,
    ShadowTally,
)


def choice(row, rows, totals):
    return ObservedChoice(row, np.array(rows, dtype=np.intp), np.array(totals, dtype=np.int64))


@pytest.mark.parametrize(
    ("totals", "scores", "weight", "preferred_row"),
    [
        pytest.param([10, 10, 10], [5, 5, 5], 1, None, id="no preference"),
        pytest.param([10, 10, 10], [5, 6, 0], 1, 3, id="another is better"),
        pytest.param([10, 10, 10], [6, 6, 0], 1, None, id="another is as good"),
        pytest.param([12, 10, 10], [0, 1, 1], 1, None, id="not enough to matter"),
        pytest.param([12, 10, 10], [0, 1, 0], 3, 3, id="enough with its weight"),
    ],
)
def test_rather(totals, scores, weight, preferred_row):
    """Another node would have been chosen exactly where the chosen one is no longer among the best."""
    made = choice(1, [1, 3, 4], totals)

    assert preferred_row == made.preferred_row(np.array(scores, dtype=np.int64), weight)


@given(
    nodes=st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 100), st.integers(0, 2)), min_size=1, max_size=9
    ),
    weight=st.integers(1, 100),
    data=st.data(),
)
def test_one_node_at_a_time(nodes, weight, data):
    """The answer for all nodes together is what comparing the chosen one with each other gives."""
    row = data.draw(st.sampled_from(range(len(nodes))))
    totals, scores, codes = (list(column) for column in zip(*nodes, strict=True))
    codes[row] = 0
    made = choice(row, range(len(nodes)), totals)
    left = made.without_rejected(np.array(codes, dtype=np.uint8))
    preferred_row = left.preferred_row(np.array(scores, dtype=np.int64)[left.rows], weight)
    with_it = {
        i: total + weight * score
        for i, (total, score) in enumerate(zip(totals, scores, strict=True))
        if not codes[i]
    }

    assert sum(code > 0 for code in codes) == made.nodes_rejected(np.array(codes, dtype=np.uint8))
    assert (with_it[row] == max(with_it.values())) == (preferred_row is None)
    assert preferred_row is None or with_it[preferred_row] == max(with_it.values())


def test_tally():
    """Attempts are counted by outcome; those that would have gone another way are named, the last ones."""
    tally = ShadowTally()
    tally.add(ShadowComparison(ShadowOutcome.SAME, "default/first", "n0", nodes_rejected=2))
    for i in range(LATEST + 1):
        tally.add(ShadowComparison(ShadowOutcome.MOVED, f"default/p{i}", "n0", "n1"))
    report = tally.report()

    assert ({"moved": LATEST + 1, "same": 1}, 2) == (report["attempts"], report["nodesRejected"])
    assert [f"default/p{i}" for i in range(1, LATEST + 1)] == [each["pod"] for each in report["latest"]]
    assert {"node": "n0", "outcome": "moved", "detail": "n1"}.items() <= report["latest"][0].items()
