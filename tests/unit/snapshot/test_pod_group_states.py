"""From waiting to assumed to assigned, and back: what a group knows of its pods."""

import pytest

from berth.objects.pods.pod_spec import SchedulingGroup
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates, group_of
from berth.testing.builders import make_pod

KEY = GroupKey("default", "g")


def member(name="a", node=""):
    return make_pod(name, scheduling_group=SchedulingGroup("g"), node_name=node)


def standing(states):
    state = states.known(KEY)
    return len(state.pods), [p.name for p in state.unscheduled], sorted(state.assumed), sorted(state.assigned)


@pytest.mark.parametrize(
    ("steps", "after"),
    [
        pytest.param([("add", "")], (1, ["a"], [], []), id="unscheduled"),
        pytest.param([("add", "n0")], (1, [], [], ["default-a"]), id="on a node already"),
        pytest.param([("add", ""), ("assume", "n0")], (1, [], ["default-a"], []), id="assumed"),
        pytest.param([("assume", "n0")], (1, [], ["default-a"], []), id="assumed, group unknown"),
        pytest.param([("add", ""), ("assume", "n0"), ("forget", "n0")], (1, ["a"], [], []), id="forgotten"),
        pytest.param([("add", ""), ("assume", "n0"), ("add", "n0")], (1, [], [], ["default-a"]), id="bound"),
        pytest.param([("add", ""), ("delete", "")], (0, [], [], []), id="deleted"),
        pytest.param(
            [("add", ""), ("assume", "n0"), ("delete", ""), ("forget", "n0")],
            (0, [], [], []),
            id="gone by then",
        ),
    ],
)
def test_transitions(steps, after):
    """A pod is unscheduled, assumed or assigned, and only one of them."""
    states = PodGroupStates()
    for step, node in steps:
        getattr(states, step)(member(node=node))

    assert after == standing(states)


def test_unknown_pods_of_known_groups_are_not_assumed():
    """Only a group that is not known itself is made by an assumption."""
    states = PodGroupStates()
    states.add(member("a"))
    states.assume(member("b", "n0"))

    assert (1, ["a"], [], []) == standing(states)


def test_a_copy_is_apart():
    """A pod-group cycle's trials do not show outside of it."""
    states = PodGroupStates()
    states.add(member())
    states.copy_of(KEY).assume(member(node="n0"))

    assert (1, ["a"], [], []) == standing(states)


def test_missing_groups():
    """A group without pods is an error with upstream's text; pods without a group are no matter."""
    states = PodGroupStates()
    states.add(make_pod())

    assert [] == list(states)
    assert group_of(make_pod()) is None
    with pytest.raises(KeyError, match="pod group state not found for pod group default/g"):
        states.get(KEY)
