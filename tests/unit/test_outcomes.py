"""Which differences of victims kubernetes/kubernetes#139030 explains."""

import pytest

from tests.e2e import random_groups
from tests.e2e.outcomes import victims_by_their_own_priority

OWN = {"of-group": 220, "alone": 369, "least": 10}
GROUPS = {"of-group": 799}


@pytest.mark.parametrize(
    ("theirs", "ours", "explained"),
    [
        pytest.param({"of-group"}, {"alone"}, True, id="one in the place of another"),
        pytest.param({"of-group"}, set(), True, id="one that its group protects"),
        pytest.param({"alone"}, {"of-group"}, False, id="the other way round"),
        pytest.param({"alone"}, {"least"}, False, id="pods without a group"),
        pytest.param({"of-group", "least"}, {"of-group", "least"}, False, id="the same"),
    ],
)
def test_victims_by_their_own_priority(theirs, ours, explained):
    assert explained == victims_by_their_own_priority(OWN, GROUPS, theirs, ours)


def test_the_seed_that_shows_it():
    """Seed 4: kube-scheduler 1.36.2 evicts g2-3, by its own priority less important than there-8."""
    own, of_group = random_groups.Drawn(4).victims("g6")

    assert (220, 799, 369, None) == (own["g2-3"], of_group["g2-3"], own["there-8"], of_group.get("there-8"))


def test_a_seed_in_which_a_whole_group_is_evicted_for_it():
    """Seed 22: there-7 is spared by its own priority, though its group has none, and a group of two goes."""
    own, of_group = random_groups.Drawn(22).victims("g2")

    assert (25, 25, 51, 0) == (own["there-0"], own["there-2"], own["there-7"], of_group["there-7"])
    assert victims_by_their_own_priority(own, of_group, {"there-0", "there-2"}, {"there-7"})
