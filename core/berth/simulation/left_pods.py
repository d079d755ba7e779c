"""Pods that have no node, kind by kind in their turns, so that a try costs what it decides on.

    asked --> a try: the kind whose turn it is --> placed: its next turn, and that of kinds that it helps
                                               --> refused: all its pods are left until a pod helps them

Pods of one kind are equal to the engine; pods of one group are a kind, and have one turn.

Called by: fitting.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from berth.framework.status import Status
from berth.objects.pod import Pod
from berth.simulation.one_by_one import Left
from berth.simulation.refusals import Kind, Refusals
from berth.snapshot.pod_group_states import GroupKey

NOT_TRIED = Status()


@dataclass(frozen=True, slots=True)
class LeftPods:
    """Those of the asked pods that are left, with the reasons that they had last."""

    asked: Sequence[Pod]
    """By turn."""
    kinds: Sequence[Kind]
    """By turn."""
    turns: Mapping[Kind, Sequence[int]]
    """Those that are left of each kind, ascending; no kind has none."""
    reasons: Mapping[Kind, Status] = field(default_factory=dict)
    group_reasons: Mapping[GroupKey, Mapping[str, Status]] = field(default_factory=dict)
    """By the pod's UID."""

    def __len__(self) -> int:
        return sum(map(len, self.turns.values()))

    def __iter__(self) -> Iterator[Left]:
        """In their turns."""
        for turn in sorted(turn for turns in self.turns.values() for turn in turns):
            yield Left(self.asked[turn], self._reason(turn))

    def _reason(self, turn: int) -> Status:
        kind = self.kinds[turn]
        found = self.reasons.get(kind, NOT_TRIED)
        if isinstance(kind, GroupKey):
            return self.group_reasons.get(kind, {}).get(self.asked[turn].uid, found)
        return found


def all_of(pods: Sequence[Pod], kind_of: Callable[[Pod], Kind]) -> LeftPods:
    """The pods, none of which was tried yet, in turns as they are given."""
    kinds = [kind_of(pod) for pod in pods]
    turns: dict[Kind, list[int]] = {}
    for turn, kind in enumerate(kinds):
        turns.setdefault(kind, []).append(turn)
    return LeftPods(pods, kinds, turns)


class Turns:
    """Whose turn it is in one try of pods that are left; those are not changed by it."""

    def __init__(self, left: LeftPods, refusals: Refusals) -> None:
        self._left = left
        self._refusals = refusals
        self._turns: dict[Kind, list[int]] = {kind: list(turns) for kind, turns in left.turns.items()}
        self._group_reasons: dict[GroupKey, Mapping[str, Status]] = {}
        self._due: list[int] = []

    def begin(self) -> bool:
        """Let every kind that is not refused have its turn; False where all of them are."""
        self._due = [turns[0] for kind, turns in self._turns.items() if self._refusals.of(kind) is None]
        heapify(self._due)
        return bool(self._due)

    def next(self) -> tuple[Kind, int, list[Pod]] | None:
        """The next turn: the kind, the turn, and the pod or the group's pods; None where all had theirs."""
        if not self._due:
            return None
        turn = heappop(self._due)
        kind = self._left.kinds[turn]
        turns = self._turns[kind] if isinstance(kind, GroupKey) else (turn,)
        return kind, turn, [self._left.asked[each] for each in turns]

    def decided(self, kind: Kind, turn: int, refused: Sequence[Left], *, placed: bool) -> None:
        """Take note of what came of a turn."""
        if isinstance(kind, GroupKey):
            self._group_reasons[kind] = {each.pod.uid: each.status for each in refused}
        if not placed:
            if refused:
                self._refusals.note(kind, refused[0].pod.spec.scheduler_name, refused[0].status)
            return
        if isinstance(kind, GroupKey):
            self._keep(kind, {each.pod.uid for each in refused})
        else:
            self._remove(kind, turn)
            self._again(kind, turn)
        for helped in self._refusals.pod_placed():
            self._again(helped, turn)

    def _remove(self, kind: Kind, turn: int) -> None:
        turns = self._turns[kind]
        del turns[bisect_right(turns, turn) - 1]
        if not turns:
            del self._turns[kind]

    def _keep(self, kind: GroupKey, uids: set[str]) -> None:
        kept = [turn for turn in self._turns[kind] if self._left.asked[turn].uid in uids]
        if kept:
            self._turns[kind] = kept
        else:
            del self._turns[kind]

    def _again(self, kind: Kind, after: int) -> None:
        """Let the kind have its next turn, if it has one that is yet to come."""
        turns = self._turns.get(kind, ())
        index = 0 if isinstance(kind, GroupKey) else bisect_right(turns, after)
        if index < len(turns) and turns[index] > after:
            heappush(self._due, turns[index])

    def left(self) -> LeftPods:
        """The pods that are left now."""
        reasons = {kind: self._refusals.of(kind) or NOT_TRIED for kind in self._turns}
        return LeftPods(self._left.asked, self._left.kinds, self._turns, reasons, self._group_reasons)
