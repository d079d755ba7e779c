"""Trees of groups as users may write them: deeper than a tree may be, and in circles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.mirrors.group_trees import MAX_DEPTH, GroupTrees, key_of
from berth.framework.mirrors.store import Store
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates, TreeKey
from berth.testing.builders import make_pod
from tests.hostile.work import calls
from tests.scenarios.pod_groups.kit import group
from tests.scenarios.pod_groups.test_trees import tree


def trees_of(*groups):
    """The trees that these CompositePodGroups make."""
    composites = Store()
    trees = GroupTrees(Store(), composites)
    trees.follows = True
    for each in groups:
        composites.put(each)
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
    assert not trees.is_complete(key("0"))
    assert trees.lacks(key("4")).startswith("pod group default/4 has more than 3 groups above it")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_circle_has_no_root(size):
    """Its groups are no one's children, so that no walk goes on for ever."""
    circle = [tree(str(i), parent=str((i + 1) % size)) for i in range(size)]
    trees = trees_of(*circle)

    assert ["0"] == names(trees, "0")
    assert trees.root(key("0")) is None
    assert not trees.is_complete(key("0"))
    assert [] == list(trees.leaves(key("0")))


def member(name, of):
    """A pod of that group."""
    return make_pod(name, scheduling_group=SchedulingGroup(pod_group_name=of))


def below(name, needed, parent):
    """A gang, right below that group where one is named."""
    return group(name, needed, **({"parentCompositePodGroupName": parent} if parent else {}))


class Forest:
    """Groups and pods that come, change and go."""

    def __init__(self):
        self.groups, self.composites, self.states = Store(), Store(), PodGroupStates()
        self.trees = GroupTrees(self.groups, self.composites)
        self.trees.follows = True
        self.trees.count(self.states)

    def complete(self, one):
        """The definition: enough pods are known, or enough groups right below that are complete."""
        of = key_of(one)
        if not self.trees.path(of):
            return False
        if isinstance(of, GroupKey):
            return len(self.states.known(of).pods) >= one.needed
        return sum(map(self.complete, self.trees.children(of))) >= one.needed


NAMES = st.sampled_from("abcde")
PARENTS = st.sampled_from(["", *"abcde"])
NEEDED = st.integers(1, 2)
STEPS = st.one_of(
    st.tuples(st.just("tree"), NAMES, PARENTS, NEEDED),
    st.tuples(st.just("group"), NAMES, PARENTS, NEEDED),
    st.tuples(st.sampled_from(["no tree", "no group", "pod", "no pod"]), NAMES, st.just(""), NEEDED),
)


@given(st.lists(STEPS, max_size=40))
def test_what_is_complete_follows_each_change(steps):
    """Whatever comes and goes, in whatever order: circles, chains too long, parents that are not there."""
    forest = Forest()
    for step, name, parent, needed in steps:
        pod = member(f"{name}{needed}", name)
        match step:
            case "tree":
                forest.composites.put(tree(name, needed, parent=parent))
            case "group":
                forest.groups.put(below(name, needed, parent))
            case "no tree":
                forest.composites.remove(tree(name))
            case "no group":
                forest.groups.remove(group(name, 1))
            case "pod":
                forest.states.add(pod)
            case "no pod":
                forest.states.delete(pod)

        for each in (*forest.groups, *forest.composites):
            assert forest.complete(each) == forest.trees.is_complete(key_of(each))


def test_a_change_costs_the_same_however_many_groups_there_are():
    """Five thousand groups below one: each that comes, and each pod, is counted and no other looked at."""

    def coming(n):
        forest = Forest()
        forest.composites.put(tree("c", n))
        for i in range(n):
            forest.groups.put(below(f"g{i}", 1, "c"))

        def one_more():
            forest.groups.put(below("one", 1, "c"))
            forest.states.add(member("p", "one"))
            forest.trees.is_complete(key("c"))

        return one_more

    assert calls(coming(2_000)) <= calls(coming(20)) + 10
