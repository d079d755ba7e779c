"""A simulated cluster in which nodes are added and pods placed one by one, and both can be undone.

    pods --> all are tried --> unplaced --> a node is added --> those that may fit are tried --> unplaced ...

Pods are placed in the order of their priorities, those of a pod group together, and nothing is preempted for
them. The result is that of trying all pods again after every node, but most need not be tried: the
nodes that rejected a pod still do unless another pod helps it (refusals.py), whether the
new node has too little room is found for all pods at once (room.py), and rejections by a node of the same
shape that are final are known (shapes.py).

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


class UndoKind(NamedTuple):
    """An undo record: `before` is whether only a new node could help pods of that kind."""

    number: int
    before: bool


Step = Node | Placed | UndoKind


class AddedNode(NamedTuple):
    """The node that was added last, of that shape."""

    name: str
    shape: AddableNode


class UnplacedPods(NamedTuple):
    """How many pods have no node. `nearer` counts those whose gang has nodes for some of its pods.

    `lasting` says that no placed pod helps any of them.
    """

    left: int
    nearer: int = 0
    lasting: bool = False


def in_order(pods: Sequence[Pod]) -> list[Pod]:
    """The order of pods in the queue: by priority, then as given."""
    return sorted(pods, key=lambda pod: -pod.priority)


@dataclass
class GrowingCluster:
    """A simulated cluster to which nodes are added and on which pods are placed; all of it can be undone."""

    simulation: Simulation
    pace: Pace
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Collect the names of nodes and pods."""
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
        """Undo all steps, then place those of these pods that fit."""
        self._groups.know(pods)
        self._left = UnplacedByKind(in_order(pods), self._kind)
        kinds = [self._left.unit(number, turn)[0] for number, turn in enumerate(self._left.first.tolist())]
        frameworks = self.simulation.core.profiles.frameworks
        self._room, self._unfit = Room(kinds, frameworks), Unfit(len(kinds), frameworks)
        return await self.place()

    def left(self) -> list[Left]:
        """The pods without a node, with the reasons that `place` or `ask` found last."""
        return [*self._left]

    async def place(self) -> UnplacedPods:
        """Place the unplaced pods that fit; the reasons of the others are those at the end."""
        while True:
            before = len(self._left)
            rest = await self._tried()
            if rest.left == before:
                return rest

    async def grow(self, shape: AddableNode) -> UnplacedPods:
        """Add a node of that shape, and place the unplaced pods that fit now.

        Pods that only a new node helps fit on this one or nowhere, so those that it has too little room
        for, or that no node of its shape accepts, are not tried. `left` has no reasons of this node.
        """
        return await self._tried(self._add(shape))

    async def _tried(self, new: AddedNode | None = None) -> UnplacedPods:
        """Place the pods that fit; `new` is the one node that was added since all of them were tried.

        A pod that is placed may make room for one that was tried before it, by affinity: such pods are tried
        again until no more is placed. A reason may be from before another pod was placed that does not help.

        Each call restarts the random numbers, so that steps that were undone have no effect.
        Cost: a decision for each pod that is placed, and for each kind of pods that is tried in vain;
        besides, some operations on arrays for each pod that is placed.
        """
        self.simulation.chance.seed(self.simulation.options.seed)
        self._nearer.clear()
        turns = RetryTurns(self._left, self._only_new_node_helps(new))
        while (turn := turns.next()) is not None:
            before = len(self._left)
            with self.pace():
                refused = await self._decided(turn, new)
            if len(self._left) < before:
                turns.placed(turn)
                turns.leave_out(self._only_new_node_helps(new))
            else:
                turns.refused(turn, may_be_helped=self._noted(turn, refused[0], new))
        helped = ~self._left.stays & (self._left.first < self._left.none)
        return UnplacedPods(len(self._left), sum(self._nearer.values()), not helped.any())

    def _only_new_node_helps(self, new: AddedNode | None) -> Mask:
        """The kinds that only a new node helps, and this one does not; none without a new node.

        Shapes: result bool (k,).
        """
        if new is None:
            return np.zeros_like(self._left.stays)
        core = self.simulation.core
        core.cache.update_snapshot(core.snapshot)
        room = self._room.on(core.snapshot, core.snapshot.row_of[new.name])
        hopeless: Mask = self._left.stays & (self._unfit.of(new.shape) | ~room)
        return hopeless

    def _noted(self, turn: Turn, refused: Left, new: AddedNode | None) -> bool:
        """Record a kind that was rejected; returns whether a placed pod may help it."""
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
            self.steps.append(UndoKind(turn.number, before))
        return helped

    async def _decided(self, turn: Turn, new: AddedNode | None) -> Sequence[Left]:
        """Schedule a pod, or a group's pods; returns those without a node."""
        kind = self._left.kinds[turn.number]
        if isinstance(kind, GroupKey):
            outcome = await self._groups.place(kind, turn.pods)
            for placed in outcome.placed:
                self._placed(placed)
            self._nearer[kind] = outcome.room
            self._left.reasons_in_group[turn.number] = {e.pod.uid: e.status for e in outcome.left}
            return outcome.left
        # For a kind of many pods, cached results for all nodes cost less than evaluating one node.
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

    def _add(self, shape: AddableNode) -> AddedNode:
        """Add a node of that shape, with a new name."""
        while (name := f"{shape.node.name}-{self._number}") in self._names:
            self._number += 1
        self._number += 1
        node = renamed(shape.node, name)
        with self.pace():
            self._one_by_one.add(node)
        self._added.append((len(self.steps), name))
        self._offered.update((each, None) for each in node.status.allocatable if _counts(each))
        self.steps.append(node)
        return AddedNode(name, shape)

    def waste(self, since: int) -> float:
        """The free part of the nodes that were added since that step, from 0 to 1.

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
        """Undo all steps but the first `count`, the latest first."""
        core = self.simulation.core
        while len(self.steps) > count:
            step = self.steps.pop()
            if isinstance(step, Placed):
                await self._one_by_one.take_back(step)
                self._left.put_back(step.pod)
            elif isinstance(step, UndoKind):
                self._left.stays[step.number] = step.before
            else:
                self._added.pop()
                self._one_by_one.remove(step)
        core.cache.update_snapshot(core.snapshot)


def _counts(resource: str) -> bool:
    """Whether a free amount of the resource counts as waste."""
    return resource in (CPU, MEMORY) or is_extended(resource)
