"""Pods without a node, by kind, so that a try costs one decision a kind.

    pods --> a try: the kind whose turn it is --> placed: its next turn, and that of kinds that it helps
                                               --> rejected: its pods wait until a placed pod helps them

Pods of one kind are equal to the engine; pods of one group are a kind, and have one turn. Kinds have numbers,
so that their state is in arrays, and a kind that is not tried costs one element of an array operation.

Called by: growing_cluster.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.simulation.placing.one_by_one import Left
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.pod_group_states import GroupKey

Kind = PodTemplate | str | GroupKey
"""Pods of one template, one pod by its UID, or a group."""
NOT_TRIED = Status()


class UnplacedByKind:
    """The pods that have no node; pods are removed when they get one, and put back.

    Shapes, for k kinds: first int64 (k,), the first turn of each, `none` where no pod is left;
        stays bool (k,), whether nothing but a new node makes the engine take a pod of the kind.
    """

    def __init__(self, asked: Sequence[Pod], kind_of: Callable[[Pod], Kind]) -> None:
        """`pods` are in the order of their turns."""
        self.asked = asked
        self.none = len(asked)
        numbers: dict[Kind, int] = {}
        self._number = [numbers.setdefault(kind_of(pod), len(numbers)) for pod in asked]
        """By turn."""
        self.kinds = list(numbers)
        self._turn = {pod.uid: turn for turn, pod in enumerate(asked)}
        self._turns: list[list[int]] = [[] for _ in self.kinds]
        """Ascending, of each kind those that are left."""
        for turn, number in enumerate(self._number):
            self._turns[number].append(turn)
        self.first: Ints = np.array([turns[0] for turns in self._turns], dtype=np.int64)
        self.stays: Mask = np.zeros(len(self.kinds), dtype=bool)
        self.reasons: dict[int, Status] = {}
        """By the kind's number, why it was refused last."""
        self.reasons_in_group: dict[int, Mapping[str, Status]] = {}
        """By the number of a group, and by the pod's UID."""
        self._count = len(asked)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Left]:
        """Iterate in the order of turns, with reasons."""
        for turn in sorted(turn for turns in self._turns for turn in turns):
            yield Left(self.asked[turn], self._reason(turn))

    def _reason(self, turn: int) -> Status:
        number = self._number[turn]
        found = self.reasons.get(number, NOT_TRIED)
        return self.reasons_in_group.get(number, {}).get(self.asked[turn].uid, found)

    def take(self, pod: Pod) -> None:
        """The pod got a node."""
        turn = self._turn[pod.uid]
        number = self._number[turn]
        turns = self._turns[number]
        del turns[bisect_right(turns, turn) - 1]
        self.first[number] = turns[0] if turns else self.none
        self._count -= 1

    def put_back(self, pod: Pod) -> None:
        """The pod has no node again."""
        turn = self._turn[pod.uid]
        number = self._number[turn]
        insort(self._turns[number], turn)
        self.first[number] = self._turns[number][0]
        self._count += 1

    def unit(self, number: int, turn: int) -> list[Pod]:
        """The pods that are decided on together in that turn: one, or those of a group that are left."""
        together = isinstance(self.kinds[number], GroupKey)
        return [self.asked[each] for each in (self._turns[number] if together else (turn,))]

    def next_turn(self, number: int, after: int) -> int:
        """The next turn of that kind; `none` where it has none."""
        turns = self._turns[number]
        index = 0 if isinstance(self.kinds[number], GroupKey) else bisect_right(turns, after)
        return turns[index] if index < len(turns) and turns[index] > after else self.none

    def alone(self, number: int) -> bool:
        """Whether one pod of the kind is left."""
        return len(self._turns[number]) == 1


class Turn(NamedTuple):
    """Whose turn it is: the kind's number, the turn's, and the pod or the group's pods."""

    number: int
    turn: int
    pods: list[Pod]


class RetryTurns:
    """Whose turn it is in one try of pods that are left.

    Shapes: without bool (k,), the kinds that are not tried.
    """

    def __init__(self, left: UnplacedByKind, without: Mask) -> None:
        self._left = left
        self._refused = without.copy()
        self._helped: list[int] = []
        """Refused kinds that a pod helps which gets a node."""
        self._due: Ints = np.zeros(0, dtype=np.int64)
        self._begin()

    def _begin(self) -> None:
        """Let every kind that is not refused have its turn."""
        self._due = np.where(self._refused, self._left.none, self._left.first)

    def next(self) -> Turn | None:
        """The next turn; None where all kinds are refused that have pods left."""
        number = self._next()
        if number is None:
            self._begin()
            number = self._next()
        if number is None:
            return None
        turn = int(self._due[number])
        return Turn(number, turn, self._left.unit(number, turn))

    def _next(self) -> int | None:
        number = int(self._due.argmin()) if self._due.size else None
        return None if number is None or self._due[number] == self._left.none else number

    def refused(self, turn: Turn, *, may_be_helped: bool) -> None:
        """Record that no pod was placed: the kind is not tried again until a placed pod helps it."""
        self._due[turn.number] = self._left.none
        self._refused[turn.number] = True
        if may_be_helped:
            self._helped.append(turn.number)

    def placed(self, turn: Turn) -> None:
        """Record that a pod, or a group's pods, were placed: the kind and those it helps have a turn."""
        is_group = isinstance(self._left.kinds[turn.number], GroupKey)
        self._due[turn.number] = self._left.none if is_group else self._after(turn, turn.number)
        helped, self._helped = self._helped, []
        for number in helped:
            self._refused[number] = False
            self._due[number] = self._after(turn, number)

    def _after(self, turn: Turn, number: int) -> int:
        return self._left.next_turn(number, turn.turn)

    def leave_out(self, kinds: Mask) -> None:
        """Drop these pod kinds from the rotation. Shapes: bool (k,)."""
        self._refused |= kinds
        self._due[kinds] = self._left.none
