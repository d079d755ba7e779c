"""How many candidates are looked for, which one is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.preemption.candidates import Candidate, FoundCandidates, best_candidates, candidates_wanted
from berth.preemption.victims import Seniority
from tests.unit.preemption.kit import NOW, placed


def candidate(name, *victims, violations=0):
    """Victims as priorities, or as (priority, start)."""
    pairs = [victim if isinstance(victim, tuple) else (victim, 0) for victim in victims]
    pods = tuple(
        placed(f"{name}-{i}", priority=priority, started=start) for i, (priority, start) in enumerate(pairs)
    )
    return Candidate(name, pods, violations)


def best(*candidates):
    return [one.node_name for one in best_candidates(candidates, Seniority(NOW))]


@pytest.mark.parametrize(
    ("potential", "percentage", "absolute", "wanted"),
    [(50, 10, 100, 50), (1000, 10, 100, 100), (5000, 10, 100, 500), (100, 0, 5, 5), (70, 100, 0, 70)],
)
def test_6_4_how_many_candidates_are_wanted(potential, percentage, absolute, wanted):
    assert wanted == candidates_wanted(potential, percentage, absolute)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        pytest.param([("n1", 100, 100), ("n2", 100, 0), ("n3", 0, 0)], "n3", id="lowest highest priority"),
        pytest.param([("n1", 100, 100), ("n2", 100, 0), ("n3", 100, 100)], "n2", id="smallest sum"),
        pytest.param(
            [("n1", 100, -50, -50), ("n2", 100, -50), ("n3", 100, 0, -50)], "n2", id="smallest adjusted sum"
        ),
        pytest.param(
            [("n1", 100, 0, 0), ("n2", 1000), ("n3", 100, 0, 0, 0), ("n4", 100, 100, 100, -50)],
            "n1",
            id="the second criterion goes before the sum",
        ),
        pytest.param(
            [("n1", (100, 2), (100, 2)), ("n2", (100, 3), (100, 3)), ("n3", (100, 1), (100, 1))],
            "n2",
            id="latest earliest start",
        ),
        pytest.param(
            [("n1", (100, 4), (100, 2)), ("n2", (100, 5), (100, 1)), ("n3", (100, 3), (100, 6))],
            "n3",
            id="earliest of each node",
        ),
        pytest.param(
            [("n1", (100, 2), (0, 4)), ("n2", (100, 6), (0, 1)), ("n3", (100, 5), (0, 3))],
            "n2",
            id="only victims of the highest priority count",
        ),
    ],
)
def test_6_5_the_best_candidate(candidates, chosen):
    assert [chosen] == best(*(candidate(*one) for one in candidates))


def test_6_5_fewest_violations_go_before_everything():
    assert ["n2"] == best(candidate("n1", -5, violations=1), candidate("n2", 100, 100, 100))


def test_6_5_a_victim_that_has_not_started_counts_as_starting_now():
    assert ["n2"] == best(candidate("n1", (1, NOW - 1)), candidate("n2", (1, None)))


def test_6_5_any_of_those_that_are_equal_is_right():
    assert ["n1", "n3"] == best(candidate("n1", 1), candidate("n2", 1, 1), candidate("n3", 1))


@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=3), min_size=1, max_size=5))
def test_6_5_nothing_beats_the_best(sets_of_victims):
    """No candidate is better than the chosen ones in the criteria taken together."""
    candidates = [
        candidate(f"n{i}", *sorted(victims, reverse=True)) for i, victims in enumerate(sets_of_victims)
    ]

    def cost(one):
        priorities = [pod.priority for pod in one.victims]
        return priorities[0], sum(p + 2**31 for p in priorities), len(priorities)

    lowest = min(map(cost, candidates))
    assert [one.node_name for one in candidates if cost(one) == lowest] == best(*candidates)


def test_6_4_each_kind_of_candidate_is_capped_and_harmless_ones_come_first():
    found = FoundCandidates(wanted=2)
    for i in range(3):
        found.add(candidate(f"bad{i}", 1, violations=1))
    assert not found.enough, "one without a violation is still wanted"
    found.add(candidate("good", 1))

    assert found.enough
    assert ["good", "bad0", "bad1"] == [one.node_name for one in found.all()]
