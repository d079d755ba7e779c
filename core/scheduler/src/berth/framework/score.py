"""Arithmetic of scores as kube-scheduler does it: Go's division truncates, its Round goes away from zero.

Source: pkg/scheduler/framework/plugins/helper/normalize_score.go, shape_score.go (Kubernetes v1.36).
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import MAX_NODE_SCORE, Scores

Point = tuple[int, int]

TABLED = 1000
"""Up to this highest score normalising is a table look-up, far cheaper than dividing every score."""


def default_normalize(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scores scaled so that the highest becomes 100; `reverse` makes low ones the best.

    Shapes: scores and result int64 (k,).
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return equal_scores(scores.size, MAX_NODE_SCORE) if reverse else scores
    lowest = int(scores.min())
    if lowest == highest:
        return equal_scores(scores.size, 0 if reverse else MAX_NODE_SCORE)
    if highest <= TABLED and lowest >= 0:
        return _table(highest, reverse).take(scores)
    scaled = truncated_quotient(scores * MAX_NODE_SCORE, highest)
    return MAX_NODE_SCORE - scaled if reverse else scaled


@lru_cache(maxsize=8)
def equal_scores(k: int, score: int) -> Scores:
    """The same score for each of k nodes, not to be written to. Shapes: result int64 (k,)."""
    scores = np.full(k, score, dtype=np.int64)
    scores.flags.writeable = False
    return scores


@lru_cache(maxsize=TABLED)
def _table(highest: int, reverse: bool) -> Scores:
    """The normalised value of each score from 0 to the highest."""
    scaled = np.arange(highest + 1, dtype=np.int64) * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled


def truncated_quotient(numerators: Scores, denominator: int) -> Scores:
    """Quotients rounded towards zero; the denominator is positive."""
    quotients: Scores = numerators // denominator
    if numerators.size and numerators.min() < 0:
        quotients += (numerators < 0) & (quotients * denominator != numerators)
    return quotients


def round_half_away(values: NDArray[np.float64]) -> Scores:
    """The nearest integers, halves away from zero; values are not negative."""
    below = np.floor(values)
    return (below + (values - below >= 0.5)).astype(np.int64)  # noqa: PLR2004 - the half of the name


def broken_linear(points: Sequence[Point], at: int) -> int:
    """The value at a place on the line through the points, constant beyond both ends.

    Points are (place, value), sorted by place.
    """
    if at <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in pairwise(points):
        if at <= right:
            rise = (high - low) * (at - left)
            steps = abs(rise) // (right - left)
            return low + (steps if rise >= 0 else -steps)
    return points[-1][1]
