"""Vectors survive the wire, and what can't be right is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from berth_plugin_proto import scheduling_pb2
from berth_sdk import ContractError, Normalization, Reason, Scores, Verdicts
from berth_sdk.packing import (
    pack_bits,
    pack_scores,
    pack_verdicts,
    unpack_bits,
    unpack_scores,
    unpack_verdicts,
    verdicts_of,
)


@given(mask=arrays.arrays(np.bool_, st.integers(0, 40)))
def test_bits(mask):
    """A mask comes back as it was, one bit an entry."""
    data = pack_bits(mask)

    assert (len(mask) + 7) // 8 == len(data)
    assert mask.tolist() == unpack_bits(data, len(mask)).tolist()


def test_bits_count_from_the_least():
    """Entry i is bit i % 8 of byte i / 8."""
    assert b"\x01\x02" == pack_bits(np.array([True] + [False] * 8 + [True]))


@given(points=arrays.arrays(np.int64, st.integers(0, 9)))
def test_scores(points):
    """Scores come back as they were, whatever form they took."""
    message = pack_scores(Scores(points, Normalization.MIN_MAX), None, len(points))

    assert points.tolist() == unpack_scores(message, len(points)).tolist()


@pytest.mark.parametrize(
    ("points", "form"),
    [
        ([0, 255], "uint8"),
        ([-1, 5], "int32"),
        ([256], "int32"),
        ([1 << 31], "int64"),
        ([-(1 << 40)], "int64"),
    ],
)
def test_scores_take_the_narrowest_form(points, form):
    """A score that fits into a byte costs a byte."""
    message = pack_scores(Scores(np.array(points), Normalization.MIN_MAX), None, len(points))

    assert form == message.WhichOneof("values")


RANGES = [(0, 100), (0, 255), (-5, 100), (-(1 << 31), (1 << 31) - 1), (-(1 << 62), 1 << 62)]
TYPES = ["<i8", ">i8", "<i4", ">i4", "u1", "i1", "<u4"]


@st.composite
def masked_scores(draw):
    """Scores of some type and range, not always side by side in memory, and what was asked about."""
    kind = np.dtype(draw(st.sampled_from(TYPES)))
    low, high = draw(st.sampled_from(RANGES))
    limits = np.iinfo(kind)
    elements = st.integers(max(low, limits.min), min(high, limits.max))
    points = draw(arrays.arrays(kind, draw(st.integers(0, 12)), elements=elements))[
        :: draw(st.sampled_from([1, 2, -1]))
    ]
    asked = draw(st.none() | arrays.arrays(np.bool_, len(points)))
    return points, asked, draw(st.sampled_from(Normalization))


@given(masked_scores())
def test_scores_by_the_plain_rule(drawn):
    """Range, width and zeros are those of what was asked about, whatever type the author's numbers have."""
    points, asked, normalization = drawn
    wanted = [int(x) if asked is None or asked[i] else 0 for i, x in enumerate(points)]
    low, high = min([0, *wanted]), max([0, *wanted])
    divided = normalization in (Normalization.MAX, Normalization.MAX_REVERSE)
    if (normalization is Normalization.NONE and not 0 <= low <= high <= 100) or (divided and low < 0):
        with pytest.raises(ContractError, match=f"scores from {low}"):
            pack_scores(Scores(points, normalization), asked, len(points))
        return
    message = pack_scores(Scores(points, normalization), asked, len(points))
    forms = {"uint8": (0, 255), "int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), 1 << 63)}
    narrowest = next(form for form, (least, most) in forms.items() if least <= low and high <= most)

    assert (narrowest, normalization.value) == (message.WhichOneof("values"), message.normalization)
    assert wanted == unpack_scores(message, len(points)).tolist()


def test_only_candidates_count():
    """Entries that were not asked about are sent as 0 and can't break anything."""
    asked = np.array([True, False])
    scores = pack_scores(Scores(np.array([7, -9]), Normalization.NONE), asked, 2)
    verdicts = pack_verdicts(Verdicts(np.array([0, 9], np.uint8), ()), asked)

    assert b"\x07\x00" == scores.uint8
    assert ("all", 0) == (verdicts.WhichOneof("codes"), verdicts.all)


@given(codes=arrays.arrays(np.uint8, st.integers(1, 9), elements=st.integers(0, 2)))
def test_verdicts(codes):
    """Codes come back as they were."""
    table = (Reason("a"), Reason("b"))
    message = pack_verdicts(Verdicts(codes, table), None)

    assert codes.tolist() == unpack_verdicts(message, table, len(codes)).codes.tolist()


def test_a_mask_means_what_passes():
    """A bool answer is True where the node passes; the rest gets the first reason."""
    assert [0, 1] == verdicts_of(np.array([True, False]), (Reason("a"),), 2).codes.tolist()


@pytest.mark.parametrize(
    "unpack",
    [
        pytest.param(lambda: unpack_bits(b"123", 4), id="bitmap"),
        pytest.param(lambda: unpack_scores(scheduling_pb2.Scores(uint8=b"123"), 4), id="scores"),
        pytest.param(lambda: unpack_scores(scheduling_pb2.Scores(), 4), id="no scores"),
        pytest.param(lambda: unpack_verdicts(scheduling_pb2.Verdicts(each=b"123"), (), 4), id="verdicts"),
    ],
)
def test_wrong_lengths_are_refused(unpack):
    """A vector of another length is an error, never cut or filled."""
    with pytest.raises(ValueError, match=r"\d|without"):
        unpack()


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param(Scores(np.array([1.5]), Normalization.NONE), id="no integers"),
        pytest.param(Scores(np.array([1, 2]), Normalization.NONE), id="wrong length"),
        pytest.param(Scores(np.array([101]), Normalization.NONE), id="out of range"),
        pytest.param(Scores(np.array([-1]), Normalization.NONE), id="negative"),
        pytest.param(Scores(np.array([np.nan]), Normalization.MIN_MAX), id="no number"),
        pytest.param(Scores(np.array([np.inf]), Normalization.MIN_MAX), id="infinite"),
        pytest.param(Scores(np.array([2**63], dtype=np.uint64), Normalization.MAX), id="unsigned"),
        pytest.param(Scores(np.array([2**64], dtype=object), Normalization.MAX), id="larger than 64 bits"),
    ],
)
def test_scores_that_are_not_sent(scores):
    """Wrong types, lengths and ranges are the author's error."""
    with pytest.raises(ContractError):
        pack_scores(scores, None, 1)
