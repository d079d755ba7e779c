"""Ranks: totals brought up to date row by row are those added up anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.evaluation.caching.top_scores import LEFT_OUT
from berth.evaluation.caching.total_scores import TotalScores
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Depends, NormalizedBy, NormalizeScorePlugin
from berth.framework.score import default_normalize
from berth.plugins.inter_pod_affinity.scoring import normalized
from berth.testing.builders import make_pod
from tests.fakes import Scores

POD = make_pod()
KINDS = {
    "highest": default_normalize,
    "lowest": lambda scores: default_normalize(scores, reverse=True),
    "stretched": normalized,
    "counted": lambda scores: scores + scores.size,
}


class Normal(NormalizeScorePlugin):
    """A plugin whose raw scores are normalised in one of several ways."""

    depends = Depends.NODE

    def __init__(self, kind):
        self.kind = kind

    def score(self, state, pod, nodes):
        raise NotImplementedError

    def normalized_by(self, state):
        del state
        return NormalizedBy.ALL if self.kind == "counted" else NormalizedBy.EXTREMES

    def normalize_score(self, state, pod, scores):
        del state, pod
        return KINDS[self.kind](scores)


ROWS = 6
RAW = st.lists(st.integers(0, 9), min_size=ROWS, max_size=ROWS)
STEPS = st.tuples(st.integers(0, ROWS - 1), st.booleans(), st.integers(0, 99), st.integers(0, 9))


def ranks(kind, plain, raw, fits):
    made, state = TotalScores(ROWS, kept=True), CycleState()
    made.add(Scores("plain"), 2, plain, state, fits)
    made.add(Normal(kind), 3, raw, state, fits)
    made.add_up(state, POD, fits)
    return made


@given(
    kind=st.sampled_from(sorted(KINDS)),
    plain=RAW,
    raw=RAW,
    fits=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    steps=st.lists(STEPS, max_size=12),
)
def test_row_by_row_is_anew(kind, plain, raw, fits, steps):
    """Rows come, go and change their scores one by one; totals and the best rows are those of all at once."""
    plain, raw, fits = np.array(plain), np.array(raw), np.array(fits)
    known, state = ranks(kind, plain, raw, fits), CycleState()
    for row, there, score, extra in steps:
        fits[row] = there
        if there:
            plain[row], raw[row] = score, extra
            known.set_row(row, 2 * score, [extra], state, POD)
        else:
            known.drop_row(row)
        totals = known.add_up(state, POD, fits)
        anew = ranks(kind, plain, raw, fits).totals

        assert anew.tolist() == totals.tolist()
        if fits.any():
            assert known.best()[0] == anew.max() > LEFT_OUT
            assert np.flatnonzero(anew == anew.max()).tolist() == list(known.best()[1])


@given(
    plain=RAW,
    fits=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    steps=st.lists(STEPS, max_size=12),
    cut=st.integers(0, ROWS - 1),
)
def test_the_best_of_some_rows(plain, fits, steps, cut):
    """Among rows from one on, too; rows that come or go are an array of their own, as a search makes it."""
    plain, fits = np.array(plain), np.array(fits)
    known, state = ranks("stretched", plain, np.zeros(ROWS, dtype=np.int64), fits), CycleState()
    among = np.flatnonzero(fits[cut:]) + cut
    for row, there, score, _ in steps:
        if there:
            plain[row] = score
            known.set_row(row, 2 * score, [0], state, POD)
        else:
            known.drop_row(row)
        if fits[row] != there:
            fits[row], among = there, None
        totals = known.add_up(state, POD, fits)
        among = np.flatnonzero(fits[cut:]) + cut if among is None else among
        found = known.best_among(among) if among.size else None

        if found is not None:
            best = totals[among].max()
            assert (best, among[totals[among] == best].tolist()) == (found[0], list(found[1]))


def test_rows_that_normalize_to_others_have_no_best_by_all():
    """Where raw scores differ, those of some rows are normalized among themselves."""
    plain, raw, everywhere = np.zeros(ROWS, np.int64), np.arange(ROWS), np.ones(ROWS, dtype=bool)

    assert ranks("stretched", plain, raw, everywhere).best_among(np.array([0, 1])) is None


def test_a_row_between_the_extremes_changes_no_other_total():
    """One that leaves, and one that joins, is one entry; the totals are not added up again."""
    fits, state = np.ones(ROWS, dtype=bool), CycleState()
    known = ranks("stretched", np.zeros(ROWS, dtype=np.int64), np.array([0, 9, 4, 0, 9, 2]), fits)
    before = known.totals
    known.drop_row(2)
    known.set_row(2, 5, [3], state, POD)

    assert before is known.totals
    assert 5 + 3 * 33 == known.totals[2]


@given(
    kind=st.sampled_from(sorted(KINDS)),
    plain=st.tuples(RAW, RAW),
    raw=st.tuples(RAW, RAW),
    fits=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    changed=st.sets(st.integers(0, ROWS - 1)),
    same_raw=st.booleans(),
)
def test_many_rows_at_once_are_anew(kind, *, plain, raw, fits, changed, same_raw):
    """Rows that change their scores together, or fit from now on, leave the totals of all added up anew."""
    (before, after), (raw_before, raw_after) = np.array(plain), np.array(raw)
    there = np.array(fits)
    known, state = ranks(kind, before.copy(), raw_before.copy(), there), CycleState()
    rows = np.array(sorted(changed), dtype=np.intp)
    before[rows], there[rows] = after[rows], True
    if not same_raw:
        raw_before[rows] = raw_after[rows]
    known.set_rows(rows, 2 * before[rows], [raw_before[rows]])

    anew = ranks(kind, before, raw_before, there)
    assert anew.totals.tolist() == known.add_up(state, POD, there).tolist()
    if there.any():
        assert list(anew.best()[1]) == list(known.best()[1])


@given(
    kind=st.sampled_from(sorted(KINDS)),
    plain=RAW,
    raw=st.one_of(RAW, st.integers(0, 9).map(lambda each: [each] * ROWS)),
    fits=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    left=st.sets(st.integers(0, ROWS - 1)),
)
def test_fewer_rows_are_normalised_among_themselves(kind, plain, raw, fits, left):
    """Where others turn further rows down, the rest scores as if these had never fitted."""
    plain, raw, fits = np.array(plain), np.array(raw), np.array(fits)
    rows = np.array(sorted(left & set(np.flatnonzero(fits).tolist())), dtype=np.intp)
    alone = np.zeros(ROWS, dtype=bool)
    alone[rows] = True
    known, anew = ranks(kind, plain, raw, fits), ranks(kind, plain, raw, alone)

    found = known.on(rows, CycleState(), POD, whole=False)

    assert anew.totals[rows].tolist() == found.totals.tolist()


@pytest.mark.parametrize("weights", [(1, 1), (2, 1), (1, 3), (2, 3)])
def test_what_nodes_objects_determine_stays_apart_from_what_other_plugins_add(weights):
    fits, object_scores, others = np.ones(ROWS, dtype=bool), np.arange(ROWS), np.full(ROWS, 5)
    known = TotalScores(ROWS, kept=True)
    plugin = Scores("of objects")
    plugin.depends = Depends.OBJECT
    known.add(plugin, weights[0], object_scores, CycleState(), fits)
    known.add(Scores("others"), weights[1], others, CycleState(), fits)

    assert (weights[0] * np.arange(ROWS)).tolist() == known.object_scores.tolist()
    assert np.arange(ROWS).tolist() == object_scores.tolist()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("weights", [(1,), (1, 1), (1, 2, 1), (2, 1)])
def test_what_plugins_gave_stays_as_it_is(kept, weights):
    """Arrays that plugins answered with are read, whether what is known of the class is kept or not."""
    given = [np.arange(ROWS, dtype=np.int64) + i for i in range(len(weights))]
    for raw in given:
        raw.flags.writeable = False
    made, state, fits = TotalScores(ROWS, kept=kept), CycleState(), np.ones(ROWS, dtype=bool)
    for i, (weight, raw) in enumerate(zip(weights, given, strict=True)):
        made.add(Scores(f"plain-{i}"), weight, raw, state, fits)
    made.add(Normal("highest"), 2, given[0], state, fits)
    expected = sum(weight * raw for weight, raw in zip(weights, given, strict=True))
    totals = made.add_up(state, POD, fits)

    assert (expected + 2 * default_normalize(given[0])).tolist() == totals.tolist()
    if kept:
        made.set_row(0, 7, [0], state, POD)
        assert 7 == made.unnormalized.item(0)
