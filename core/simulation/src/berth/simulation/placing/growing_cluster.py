"""A simulated cluster that grows: nodes join and pods are placed one by one, and both are taken back.

    asked --> all are tried --> left --> a node joins --> those that it may have room for --> left, and so on

Pods are placed in the order of their priorities, those of a pod group together, and nothing is preempted for
them. What is left is what trying all pods again after every node would come to, but most are not tried: the
nodes that refused a pod go on to refuse it unless what it waits for is another pod (refusals.py), whether the
new node has too little room for it is found out for all pods at once (room.py), and what a node of the same
shape refused for good is known (shapes.py).

Called by: fitting.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.resource_names import CPU, MEMORY, is_extended
from berth.queue.pools.pod_kinds import like
from berth.simulation.placing.group_placing import GroupPlacing
from berth.simulation.placing.one_by_one import Left, OneByOne, Pace, Placed
from berth.simulation.placing.refusals import Refusals
from berth.simulation.placing.room import Room
from berth.simulation.placing.shapes import AddableNode, Unfit
from berth.simulation.placing.unplaced_by_kind import Kind, RetryTurns, Turn, UnplacedByKind
from berth.simulation.running.engine import Simulation
from berth.simulation.what_if.changes import renamed
from berth.snapshot.columns.growing import Mask
from berth.snapshot.pod_group_states import GroupKey


class Stays(NamedTuple):
    """Whether nothing but a new node helps pods of a kind has changed; `before` is what it was."""

    number: int
    before: bool


Step = Node | Placed | Stays


class Newcomer(NamedTuple):
    """The node that joined last, of that shape."""

    name: str
    shape: AddableNode


class UnplacedPods(NamedTuple):
    """How many pods have no node. `nearer` counts those of gangs that would have one if their gang had.

    `lasting` says that no pod that gets a node helps any of them.
    """

    left: int
    nearer: int = 0
    lasting: bool = False


def in_order(pods: Sequence[Pod]) -> list[Pod]:
    """The order in which a queue gives pods that came together: by priority, else as given."""
    return sorted(pods, key=lambda pod: -pod.priority)


@dataclass
class GrowingCluster:
    """A simulated cluster that nodes join and pods are placed on, all of which can be taken back."""

    simulation: Simulation
    pace: Pace
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take note of the names that are taken."""
        self._one_by_one = OneByOne(self.simulation)
        self._groups = GroupPlacing(self.simulation, self._one_by_one)
        self._names = {node.name for node in self.simulation.nodes()}
        self._number = 0
        self._added: list[tuple[int, str]] = []
        """Nodes with the steps in which they were added."""
        self._offered: dict[str, None] = {}
        """What they offer of what can be wasted."""
        self._refusals = Refusals(self.simulation.core.profiles.queue_profiles)
        self._nearer: dict[GroupKey, int] = {}
        self._left = UnplacedByKind((), self._kind)
        self._room = Room((), {})
        self._unfit = Unfit(0, {})

    # Pods.

    async def ask(self, pods: Sequence[Pod]) -> UnplacedPods:
        """Place those of these pods that fit, once what was placed for others is taken back."""
        self._groups.know(pods)
        self._left = UnplacedByKind(in_order(pods), self._kind)
        kinds = [self._left.unit(number, turn)[0] for number, turn in enumerate(self._left.first.tolist())]
        frameworks = self.simulation.core.profiles.frameworks
        self._room, self._unfit = Room(kinds, frameworks), Unfit(len(kinds), frameworks)
        return await self.place()

    def left(self) -> list[Left]:
        """Those that are left, with the reasons that `place` or `ask` found last."""
        return [*self._left]

    async def place(self) -> UnplacedPods:
        """Place those that are left and fit; the reasons of the others are those of the end."""
        while True:
            before = len(self._left)
            rest = await self._tried()
            if rest.left == before:
                return rest

    async def grow(self, shape: AddableNode) -> UnplacedPods:
        """Add a node of that shape, and place those that are left and fit now.

        Pods that nothing helps but a new node go to this one or nowhere, so those that it has too little room
        for, or that no node of its shape takes, are not tried. `left` has no reasons of it.
        """
        return await self._tried(self._add(shape))

    async def _tried(self, new: Newcomer | None = None) -> UnplacedPods:
        """Place those that fit; `new` is the one node that was not there when all of them were tried.

        A pod that is placed may make room for one that was tried before it, by affinity: such pods are tried
        again until none is placed any more. A reason may be of before a pod was placed that does not help.

        Chance begins anew with each call, so that what was tried before and taken back does not count.
        Cost: a decision for each pod that is placed, and for each kind of pods that is left and tried;
        besides, some operations on arrays for each pod that is placed.
        """
        self.simulation.chance.seed(self.simulation.options.seed)
        self._nearer.clear()
        turns = RetryTurns(self._left, self._hopeless(new))
        while (turn := turns.next()) is not None:
            before = len(self._left)
            with self.pace():
                refused = await self._decided(turn, new)
            if len(self._left) < before:
                turns.placed(turn)
                turns.leave_out(self._hopeless(new))
            else:
                turns.refused(turn, may_be_helped=self._noted(turn, refused[0], new))
        helped = ~self._left.stays & (self._left.first < self._left.none)
        return UnplacedPods(len(self._left), sum(self._nearer.values()), not helped.any())

    def _hopeless(self, new: Newcomer | None) -> Mask:
        """The kinds that only a new node helps, but not this one; none without it.

        Shapes: result bool (k,).
        """
        if new is None:
            return np.zeros_like(self._left.stays)
        core = self.simulation.core
        core.cache.update_snapshot(core.snapshot)
        room = self._room.on(core.snapshot, core.snapshot.row_of[new.name])
        hopeless: Mask = self._left.stays & (self._unfit.of(new.shape) | ~room)
        return hopeless

    def _noted(self, turn: Turn, refused: Left, new: Newcomer | None) -> bool:
        """Take note of a kind that was refused; whether a pod helps it that gets a node."""
        kind, helped = self._left.kinds[turn.number], True
        if not isinstance(kind, GroupKey):
            self._left.reasons[turn.number] = refused.status
            helped = self._refusals.may_be_helped(refused.pod.spec.scheduler_name, refused.status)
            if new is not None:
                row = self.simulation.core.snapshot.row_of[new.name]
                self._unfit.note(new.shape, turn.number, refused.pod, refused.status, row)
        before = bool(self._left.stays[turn.number])
        if before == helped:
            self._left.stays[turn.number] = not helped
            self.steps.append(Stays(turn.number, before))
        return helped

    async def _decided(self, turn: Turn, new: Newcomer | None) -> Sequence[Left]:
        """Those of a pod, or of a group's pods, that have no node."""
        kind = self._left.kinds[turn.number]
        if isinstance(kind, GroupKey):
            outcome = await self._groups.place(kind, turn.pods)
            for placed in outcome.placed:
                self._placed(placed)
            self._nearer[kind] = outcome.room
            self._left.reasons_in_group[turn.number] = {e.pod.uid: e.status for e in outcome.left}
            return outcome.left
        # What is known of a kind of many pods, of all nodes, costs less than a look at one node.
        alone = self._left.stays[turn.number] and self._left.alone(turn.number)
        answer = await self._one_by_one.place(turn.pods[0], new.name if new and alone else None)
        if isinstance(answer, Placed):
            self._placed(answer)
            return ()
        return (Left(turn.pods[0], answer),)

    def _placed(self, placed: Placed) -> None:
        self._left.take(placed.pod)
        self.steps.append(placed)

    def _kind(self, pod: Pod) -> Kind:
        return self._groups.key_of(pod) or like(pod)

    # Nodes.

    def _add(self, shape: AddableNode) -> Newcomer:
        """Add a node of that shape, under a name of its own."""
        while (name := f"{shape.node.name}-{self._number}") in self._names:
            self._number += 1
        self._number += 1
        node = renamed(shape.node, name)
        with self.pace():
            self._one_by_one.add(node)
        self._added.append((len(self.steps), name))
        self._offered.update((each, None) for each in node.status.allocatable if _counts(each))
        self.steps.append(node)
        return Newcomer(name, shape)

    def waste(self, since: int) -> float:
        """The part of the nodes added since that step that is left free, from 0 to 1.

        Cost: some operations on arrays for each resource that new nodes offer.
        """
        core = self.simulation.core
        core.cache.update_snapshot(core.snapshot)
        snapshot, added = core.snapshot, self._added[bisect_left(self._added, since, key=itemgetter(0)) :]
        if not added:
            return 0.0
        rows = [snapshot.row_of[name] for _, name in added]
        free, counts = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
        for resource in self._offered:
            offered = snapshot.offered(resource)
            if offered is not None:
                there, taken = offered[rows], snapshot.held(resource)[rows]
                counts += there > 0
                free += np.where(there > 0, np.maximum(0.0, 1 - taken / np.maximum(there, 1)), 0.0)
        return round(float((free / np.maximum(counts, 1)).mean()), 6)

    # Back again.

    async def back_to(self, count: int) -> None:
        """Take back all steps but the first so many, the latest first."""
        core = self.simulation.core
        while len(self.steps) > count:
            step = self.steps.pop()
            if isinstance(step, Placed):
                await self._one_by_one.take_back(step)
                self._left.put_back(step.pod)
            elif isinstance(step, Stays):
                self._left.stays[step.number] = step.before
            else:
                self._added.pop()
                self._one_by_one.remove(step)
        core.cache.update_snapshot(core.snapshot)


def _counts(resource: str) -> bool:
    """Whether it is waste where the resource is left free."""
    return resource in (CPU, MEMORY) or is_extended(resource)
