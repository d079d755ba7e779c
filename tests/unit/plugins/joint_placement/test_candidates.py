"""Which nodes have a column: few, and yet enough."""

import numpy as np

from berth.framework.node_scores import NodeScores
from berth.plugins.joint_placement.candidates import MAX_ROWS, candidates
from berth.plugins.joint_placement.rules import Near

NODES = 10_000


def scores(totals):
    return NodeScores(np.arange(len(totals)), np.array(totals, dtype=np.int64))


def test_the_best_nodes_are_candidates_as_many_as_there_are_pods():
    """The others of the group can take no more than these."""
    found = candidates(0, 3, 3, scores([5, 9, 1, 7, 8]), rules=[], wanted=frozenset())

    assert [1, 3, 4] == found.tolist()


def test_rows_that_pods_began_on_are_candidates():
    """Whatever they score."""
    found = candidates(0, 1, 1, scores([5, 9, 1]), rules=[], wanted=frozenset((2,)))

    assert [1, 2] == found.tolist()


def test_each_domain_of_a_rule_has_candidates():
    """The best nodes are all in one zone; pods that seek each other may have to go to the other one."""
    place_of = np.array([1, 1, 1, 2, 2])
    near = Near(0, frozenset((0,)), starts=True, place_of=place_of, met=np.zeros(3, dtype=bool))
    found = candidates(0, 2, 2, scores([9, 8, 7, 2, 1]), rules=[near], wanted=frozenset())

    assert [0, 1, 3, 4] == found.tolist()


def test_candidates_are_bounded():
    """A domain for each node."""
    place_of = np.arange(1, NODES + 1)
    near = Near(0, frozenset((0,)), starts=True, place_of=place_of, met=np.zeros(NODES + 1, dtype=bool))
    found = candidates(0, 8, 64, scores(range(NODES)), rules=[near], wanted=frozenset())

    assert MAX_ROWS * 8 // 64 == found.size
