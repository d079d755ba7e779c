"""Trees of groups as users may write them: deeper than a tree may be, and in circles."""

import pytest

from berth.framework.mirrors.group_trees import MAX_DEPTH, GroupTrees, is_complete
from berth.framework.mirrors.store import Store
from berth.snapshot.pod_group_states import PodGroupStates, TreeKey
from tests.scenarios.pod_groups.test_trees import tree


def trees_of(*groups):
    """The trees that these CompositePodGroups make."""
    composites = Store()
    trees = GroupTrees(Store(), composites)
    trees.follows = True
    for group in groups:
        composites.put(group)
    return trees


def key(name):
    return TreeKey("default", name)


def names(trees, name):
    return [group.name for group in trees.every(key(name))]


def test_levels_below_the_fourth_are_no_part_of_a_tree():
    """Three thousand groups, each below the one before: who looks at the root looks at four."""
    chain = [tree("0"), *(tree(str(i), parent=str(i - 1)) for i in range(1, 3_000))]
    trees = trees_of(*chain)

    assert [str(i) for i in range(MAX_DEPTH)] == names(trees, "0")
    assert not is_complete(trees, PodGroupStates(), chain[0])
    assert trees.lacks(key("4")).startswith("pod group default/4 has more than 3 groups above it")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_circle_has_no_root(size):
    """Its groups are no one's children, so that no walk goes on for ever."""
    circle = [tree(str(i), parent=str((i + 1) % size)) for i in range(size)]
    trees = trees_of(*circle)

    assert ["0"] == names(trees, "0")
    assert trees.root(key("0")) is None
    assert not is_complete(trees, PodGroupStates(), circle[0])
    assert [] == list(trees.leaves(key("0")))
