"""Whose turn it is among pods that are left is what going through all of them would come to."""

import random

import pytest

from berth.framework.status import unschedulable
from berth.simulation.left_pods import Turns, all_of
from berth.simulation.one_by_one import Left
from berth.testing.builders import make_pod

NO_ROOM = unschedulable("no room")


class Refused:
    """Refusals of which a placement helps those of these kinds."""

    def __init__(self, helped):
        self.kinds, self._helped = {}, helped

    def of(self, kind):
        return self.kinds.get(kind)

    def note(self, kind, profile, status):
        del profile
        self.kinds[kind] = status

    def pod_placed(self):
        found = [kind for kind in self.kinds if kind in self._helped]
        for kind in found:
            del self.kinds[kind]
        return found


class Decisions:
    """Places a pod where its number and what was placed before say so; keeps the order of questions."""

    def __init__(self, seed):
        self.chance, self.asked, self.placed = random.Random(seed), [], []

    def place(self, pod):
        self.asked.append(pod.name)
        fits = self.chance.random() < 0.4
        if fits:
            self.placed.append(pod.name)
        return fits


def one_after_the_other(pods, kind_of, refused, decisions):
    """All pods in their order, again and again, until all that are left are refused."""
    while True:
        left = []
        for pod in pods:
            kind = kind_of(pod)
            if refused.of(kind) is None and decisions.place(pod):
                refused.pod_placed()
                continue
            if refused.of(kind) is None:
                refused.note(kind, "", NO_ROOM)
            left.append(pod)
        pods = left
        if all(refused.of(kind_of(pod)) is not None for pod in pods):
            return [pod.name for pod in pods]


def in_turns(pods, kind_of, refused, decisions):
    """The same by turns."""
    turns = Turns(all_of(pods, kind_of), refused)
    while turns.begin():
        while (turn := turns.next()) is not None:
            kind, number, (pod,) = turn
            placed = decisions.place(pod)
            turns.decided(kind, number, () if placed else (Left(pod, NO_ROOM),), placed=placed)
    return [each.pod.name for each in turns.left()]


@pytest.mark.parametrize("seed", range(20))
def test_turns_are_those_of_going_through_all_pods(seed):
    """The same questions in the same order, and the same pods left, whatever helps whom."""
    chance = random.Random(seed)
    pods = [make_pod(f"p{i}", labels={"kind": chance.choice("abcd")}) for i in range(chance.randint(1, 20))]
    helped = {kind for kind in "abcd" if chance.random() < 0.4}

    def kind_of(pod):
        return pod.labels["kind"]

    expected, found = Decisions(seed), Decisions(seed)
    left = one_after_the_other(pods, kind_of, Refused(helped), expected)

    assert left == in_turns(pods, kind_of, Refused(helped), found)
    assert (expected.asked, expected.placed) == (found.asked, found.placed)


def test_a_try_leaves_what_it_was_given_as_it_is():
    """A shape of new nodes is tried with the pods that were left before it."""
    pods = [make_pod(f"p{i}") for i in range(3)]
    given = all_of(pods, lambda _: "kind")
    turns = Turns(given, Refused(set()))

    turns.begin()
    while (turn := turns.next()) is not None:
        turns.decided(*turn[:2], (), placed=True)

    assert (3, 0) == (len(given), len(turns.left()))
    assert ["p0", "p1", "p2"] == [each.pod.name for each in given]
