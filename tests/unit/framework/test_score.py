import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.framework.score import broken_linear, default_normalize, round_half_away, truncated_quotient


@pytest.mark.parametrize(
    ("scores", "forward", "reverse"),
    [
        ([1, 2, 3, 4], [25, 50, 75, 100], [75, 50, 25, 0]),
        ([1000, 10, 20, 30], [100, 1, 2, 3], [0, 99, 98, 97]),
        ([1, 1, 1, 1], [100, 100, 100, 100], [0, 0, 0, 0]),
        ([1000, 1, 1, 1], [100, 0, 0, 0], [0, 100, 100, 100]),
        ([0, 0], [0, 0], [100, 100]),
        ([], [], []),
        ([30_000, 15_000, 1], [100, 50, 0], [0, 50, 100]),
        ([3, -1, -4], [100, -33, -133], [0, 133, 233]),
    ],
)
def test_default_normalize(scores, forward, reverse):
    """The highest score becomes 100, the others their share of it, cut towards zero."""
    raw = np.array(scores, dtype=np.int64)

    assert forward == default_normalize(raw).tolist()
    assert reverse == default_normalize(raw, reverse=True).tolist()


@settings(deadline=None)
@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
def test_truncated_quotient(numerator, denominator):
    """Division cuts towards zero, as Go's does."""
    magnitude = abs(numerator) // denominator

    assert (magnitude if numerator >= 0 else -magnitude) == truncated_quotient(
        np.array([numerator]), denominator
    )[0]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (((0, 100), (100, 0)), {0: 100, 1: 99, 33: 67, 50: 50, 99: 1, 100: 0}),
        (((0, 0), (50, 100), (100, 20)), {1: 2, 33: 66, 50: 100, 51: 99, 75: 60, 99: 22}),
        (((0, 100), (70, 0)), {33: 53, 71: 0}),
        (((20, 30), (40, 70)), {0: 30, 20: 30, 100: 70}),
    ],
)
def test_broken_linear(points, expected):
    """Between two points the line is cut towards its start; beyond the ends it is flat."""
    assert expected == {at: broken_linear(points, at) for at in expected}


def test_round_half_away():
    """Halves go up, and what is just below a half goes down."""
    values = np.array([0.5, 1.5, 2.5, 0.49999999999999994, 2.0])

    assert [1, 2, 3, 0, 2] == round_half_away(values).tolist()
