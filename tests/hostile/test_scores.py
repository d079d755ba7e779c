"""Scores of any 64 bits from a plugin: they become 0 to 100, or the attempt fails in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.packing import normalized, scores_of
from berth_plugin_proto import scheduling_pb2

LIMITS = [-(2**63), -(2**63) + 1, -(2**62), -1, 0, 1, 100, 101, 2**31, 2**53, 2**62, 2**63 - 1]
SCORES = st.lists(st.sampled_from(LIMITS) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8)
FORMS = scheduling_pb2.Normalization.values()


@pytest.mark.parametrize("how", [*FORMS, 99])
@given(raw=SCORES)
def test_no_score_wraps_around(how, raw):
    """Better ones are never worth less, and equal ones the same."""
    sent = scheduling_pb2.Scores(int64=np.array(raw, dtype="<i8").tobytes())
    try:
        found = normalized("p", scores_of("p", sent, len(raw)), how).tolist()
    except ProtocolError:
        return

    assert all(0 <= score <= 100 for score in found)
    backwards = how == scheduling_pb2.NORMALIZATION_MAX_REVERSE
    ordered = [score for _, score in sorted(zip(raw, found, strict=True), reverse=backwards)]
    assert sorted(found) == ordered


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("raw", LIMITS)
def test_one_score_for_all_nodes(raw, how):
    sent = scheduling_pb2.Scores(all=raw)
    try:
        found = normalized("p", scores_of("p", sent, 3), how)
    except ProtocolError:
        return

    assert 1 == len(set(found.tolist()))
    assert 0 <= found[0] <= 100
