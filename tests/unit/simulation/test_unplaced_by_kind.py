"""Whose turn it is among pods that are left is what going through all of them would come to."""

import random

import numpy as np
import pytest

from berth.simulation.placing.unplaced_by_kind import RetryTurns, UnplacedByKind
from berth.testing.builders import make_pod


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


def one_after_the_other(pods, kind_of, helped, decisions):
    """All pods in their order, again and again, until all that are left are of refused kinds."""
    refused = set()
    while any(kind_of(pod) not in refused for pod in pods):
        left = []
        for pod in pods:
            if kind_of(pod) in refused:
                left.append(pod)
            elif decisions.place(pod):
                refused -= helped
            else:
                refused.add(kind_of(pod))
                left.append(pod)
        pods = left
    return [pod.name for pod in pods]


def in_turns(pods, kind_of, helped, decisions):
    """The same by turns."""
    left = UnplacedByKind(pods, kind_of)
    turns = RetryTurns(left, np.zeros(len(left.kinds), dtype=bool))
    while (turn := turns.next()) is not None:
        (pod,) = turn.pods
        if decisions.place(pod):
            left.take(pod)
            turns.placed(turn)
        else:
            turns.refused(turn, may_be_helped=kind_of(pod) in helped)
    return [each.pod.name for each in left]


@pytest.mark.parametrize("seed", range(20))
def test_turns_are_those_of_going_through_all_pods(seed):
    """The same questions in the same order, and the same pods left, whatever helps whom."""
    chance = random.Random(seed)
    pods = [make_pod(f"p{i}", labels={"kind": chance.choice("abcd")}) for i in range(chance.randint(1, 20))]
    helped = {kind for kind in "abcd" if chance.random() < 0.4}

    def kind_of(pod):
        return pod.labels["kind"]

    expected, found = Decisions(seed), Decisions(seed)
    left = one_after_the_other(pods, kind_of, helped, expected)

    assert left == in_turns(pods, kind_of, helped, found)
    assert (expected.asked, expected.placed) == (found.asked, found.placed)


def test_kinds_that_are_left_out_have_no_turn():
    """Neither at the beginning nor, once they are left out, later."""
    pods = [make_pod(name, uid=f"{i}") for i, name in enumerate("abcabc")]
    left = UnplacedByKind(pods, lambda pod: pod.name)
    turns = RetryTurns(left, np.array([True, False, False]))

    turn = turns.next()
    left.take(turn.pods[0])
    turns.placed(turn)
    turns.leave_out(np.array([False, False, True]))
    turn = turns.next()
    left.take(turn.pods[0])
    turns.placed(turn)

    assert None is turns.next()
    assert ["a", "c", "a", "c"] == [each.pod.name for each in left]


@pytest.mark.parametrize("seed", range(20))
def test_pods_that_are_put_back_are_left_as_before(seed):
    """In whatever order pods were taken, what is left in the end has its old turns."""
    chance = random.Random(seed)
    pods = [make_pod(f"p{i}") for i in range(chance.randint(1, 20))]
    left = UnplacedByKind(pods, lambda pod: f"{int(pod.name[1:]) % 3}")
    first, taken = left.first.tolist(), chance.sample(pods, chance.randint(1, len(pods)))

    for pod in taken:
        left.take(pod)
    remaining = [each.pod.name for each in left]
    for pod in reversed(taken):
        left.put_back(pod)

    assert [pod.name for pod in pods if pod not in taken] == remaining
    assert (first, len(pods)) == (left.first.tolist(), len(left))
    assert [pod.name for pod in pods] == [each.pod.name for each in left]
