"""Which new nodes would make pods fit: how many of each shape alone, and the best mixture of shapes.

    pods --> on the nodes that are there --> left --+--> one node of a shape, those left, one node more ...
                                                    +--> the shape that serves the objective best, again ...

Pods are placed one by one in the order of their priorities, those of a pod group together, and those that are
left are tried again after every node, so that the answer is what adding nodes one by one to the cluster would
come to. Nothing is preempted for them. A shape is given up at the first node of it that makes no pod fit and
brings no gang nearer to its place; nodes after the last one that made a pod fit are not counted.

Called by: berth.simulation_service.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.objects.resource_names import CPU, MEMORY, is_extended
from berth.queue.pod_kinds import like
from berth.simulation.changes import renamed
from berth.simulation.engine import Simulation, after
from berth.simulation.errors import InputError
from berth.simulation.group_placing import GroupPlacing
from berth.simulation.inputs import ClusterInput
from berth.simulation.left_pods import LeftPods, Turns, all_of
from berth.simulation.one_by_one import Left, OneByOne, Placed, check_ours, without_post_filter
from berth.simulation.options import Options
from berth.simulation.plugin_settings import check_in_process
from berth.simulation.refusals import Kind, Refusals
from berth.snapshot.pod_group_states import GroupKey

Pace = Callable[[], AbstractContextManager[None]]
"""Entered for each step, so that others have their turn between two; what it raises ends the work."""
Step = Node | Placed
T = TypeVar("T")


class Objective(StrEnum):
    """What the best mixture has least of."""

    NODES = "nodes"
    WASTE = "waste"
    PRICE = "price"


@dataclass(frozen=True, slots=True)
class Shape:
    """A node that could be added, at most so often; `price` is in any unit, the same for all shapes."""

    name: str
    node: Node
    most: int
    price: float | None = None


class Rest(NamedTuple):
    """The pods that have no node. `nearer` counts those of gangs that would have one if their gang had.

    `lasting` says that no pod that gets a node helps any of them.
    """

    left: LeftPods
    nearer: int = 0
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """New nodes by shape, and what they come to.

    `placed` are the pods that got a node once the new ones were there. `waste` is the part of the new nodes
    that is left free, from 0 to 1: the mean over cpu, memory and the extended resources that each offers.
    """

    nodes: dict[str, int]
    placed: int
    left: Sequence[Left]
    waste: float
    price: float | None


@dataclass(frozen=True, slots=True)
class Fit:
    """What would make the pods fit. `placed` counts those that fit without a new node."""

    placed: int
    left: Sequence[Left]
    shapes: list[Added]
    mixture: Added


def would_fit(
    cluster: ClusterInput,
    pods: Sequence[Pod],
    shapes: Sequence[Shape],
    options: Options,
    *,
    objective: Objective = Objective.NODES,
    pace: Pace = nullcontext,
) -> Fit:
    """Which of the shapes, and how many, would make these pods fit; the same input gives the same answer.

    Pods of the cluster that have no node are left out.
    Raises: InputError, PluginsError, BuildError, and what `pace` raises.
    """
    if objective is Objective.PRICE:
        for shape in shapes:
            if shape.price is None:
                raise InputError(
                    f"shape {shape.name}: price: found none; give one, or take another objective"
                )
    for pod in pods:
        check_ours(pod, {profile.scheduler_name for profile in options.loaded.profiles})

    async def run(fitting: Fitting) -> Fit:
        rest = await fitting.ask(pods)
        start = len(fitting.steps)
        found = alone = [await fitting.alone(shape, rest, start) for shape in shapes]
        if len(shapes) != 1:
            found = [await fitting.mixed(shapes, rest, start, objective), *alone]
        best = min(found, key=lambda each: (len(each.left), *_merit(each, objective)))
        return Fit(len(pods) - len(rest.left), [*rest.left], alone, best)

    return on_cluster(cluster, options, run, pace)


def on_cluster(
    cluster: ClusterInput,
    options: Options,
    then: Callable[["Fitting"], Coroutine[Any, Any, T]],
    pace: Pace = nullcontext,
) -> T:
    """What `then` finds out with the cluster's running pods on their nodes; its pending ones are left out.

    Raises: as `would_fit`, and what `then` raises.
    """
    check_in_process(options.loaded, options.plugins)
    building = ExitStack()

    async def run(simulation: Simulation) -> T:
        building.close()
        return await then(Fitting(simulation, pace))

    with building:
        building.enter_context(pace())
        return after(cluster.running(), without_post_filter(options), run)


def in_order(pods: Sequence[Pod]) -> list[Pod]:
    """The order in which a queue gives pods that came together: by priority, else as given."""
    return sorted(pods, key=lambda pod: -pod.priority)


@dataclass
class Fitting:
    """Adds nodes to a simulated cluster, places pods on it, and takes both back."""

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

    # Pods.

    async def ask(self, pods: Sequence[Pod]) -> Rest:
        """Place those of these pods that fit, once what was placed for others is taken back."""
        self._groups.know(pods)
        return await self.place(all_of(in_order(pods), self._kind))

    async def place(self, pods: LeftPods) -> Rest:
        """Place those that fit; the reasons of the others are those that they have in the end."""
        while True:
            before = len(self.steps)
            rest = await self.tried(pods)
            if len(self.steps) == before:
                return rest
            pods = rest.left

    async def tried(self, pods: LeftPods) -> Rest:
        """Place those that fit, and give those that are left.

        A pod that is placed may make room for one that was tried before it, by affinity: such pods are tried
        again until none is placed any more. A reason may be of before a pod was placed that does not help.

        Chance begins anew with each call, so that what was tried before and taken back does not count.
        Cost: a decision for each pod that is placed, and for each kind of pods that is left.
        """
        self.simulation.chance.seed(self.simulation.options.seed)
        self._refusals.clear()
        self._nearer.clear()
        turns = Turns(pods, self._refusals)
        while turns.begin():
            while (turn := turns.next()) is not None:
                kind, number, unit = turn
                before = len(self.steps)
                with self.pace():
                    refused = await self._decided(kind, unit)
                turns.decided(kind, number, refused, placed=len(self.steps) > before)
        return Rest(turns.left(), sum(self._nearer.values()), self._refusals.lasting)

    async def _decided(self, kind: Kind, pods: Sequence[Pod]) -> Sequence[Left]:
        """Those of a pod, or of a group's pods, that have no node."""
        if isinstance(kind, GroupKey):
            outcome = await self._groups.place(kind, pods)
            self.steps += outcome.placed
            self._nearer[kind] = outcome.room
            return outcome.left
        answer = await self._one_by_one.place(pods[0])
        if isinstance(answer, Placed):
            self.steps.append(answer)
            return ()
        return (Left(pods[0], answer),)

    def _kind(self, pod: Pod) -> Kind:
        return self._groups.key_of(pod) or like(pod)

    # Nodes.

    def add(self, shape: Shape) -> None:
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
            else:
                self._added.pop()
                self._one_by_one.remove(step)
        core.cache.update_snapshot(core.snapshot)

    # Answers.

    async def alone(self, shape: Shape, rest: Rest, start: int) -> Added:
        """What nodes of one shape come to, from `start` on, and back to it."""
        trial = _Trial(rest, len(self.steps), needed=Counter({shape.name: 0}))
        while trial.rest.left and trial.counts[shape.name] < shape.most:
            self.add(shape)
            if not trial.helped(shape, await self.tried(trial.rest.left), len(self.steps)):
                break
        return await self._found(trial, [shape], rest, start)

    async def mixed(self, shapes: Sequence[Shape], rest: Rest, start: int, objective: Objective) -> Added:
        """What adding the best next node comes to, again and again, from `start` on, and back to it."""
        trial, candidates = _Trial(rest, len(self.steps)), list(shapes)
        while trial.rest.left:
            candidates = [shape for shape in candidates if trial.counts[shape.name] < shape.most]
            best = await self._best_next(candidates, trial.rest, objective)
            if best is None:
                break
            self.add(best)
            trial.helped(best, await self.tried(trial.rest.left), len(self.steps))
        return await self._found(trial, shapes, rest, start)

    async def _best_next(self, shapes: list[Shape], rest: Rest, objective: Objective) -> Shape | None:
        """The shape of which one node serves best, the first of equals; None where none serves.

        Those of which no node will serve are taken out of `shapes`.
        """
        start, best = len(self.steps), None
        for number, shape in enumerate(list(shapes)):
            self.add(shape)
            then = await self.tried(rest.left)
            placed, nearer = len(rest.left) - len(then.left), then.nearer - rest.nearer
            if placed or nearer > 0:
                merit = _next_merit(objective, placed or nearer, self.waste(start), shape.price)
                found = (not placed, *merit), number, shape
                best = min(best or found, found, key=lambda each: each[:2])
            elif then.lasting:
                shapes.remove(shape)
            await self.back_to(start)
        return None if best is None else best[2]

    async def _found(self, trial: "_Trial", shapes: Sequence[Shape], before: Rest, start: int) -> Added:
        """What the trial came to, and back to the start."""
        await self.back_to(trial.useful)
        rest = await self.place(trial.rest.left) if trial.stale else trial.rest
        prices = {shape.name: shape.price for shape in shapes}
        known = [(prices[name], count) for name, count in trial.needed.items()]
        price = None if any(p is None for p, _ in known) else sum((p or 0.0) * n for p, n in known)
        counts = {name: count for name, count in trial.needed.items() if count}
        placed = len(before.left) - len(rest.left)
        found = Added(counts, placed, [*rest.left], self.waste(start), price)
        await self.back_to(start)
        return found


@dataclass
class _Trial:
    """Nodes that are added one by one: how many, and how many up to the last one that made a pod fit.

    `useful` is the number of steps up to that one; what came after it is taken back.
    """

    rest: Rest
    useful: int
    counts: Counter[str] = field(default_factory=Counter)
    needed: Counter[str] = field(default_factory=Counter)
    stale: bool = False
    """Whether a pod was placed since the reasons of those that are left were given."""

    def helped(self, shape: Shape, rest: Rest, steps: int) -> bool:
        """Take note of a node that was added; whether it made a pod fit, or brought a gang nearer."""
        self.stale = len(rest.left) < len(self.rest.left)
        nearer = rest.nearer > self.rest.nearer
        self.rest = rest
        self.counts[shape.name] += 1
        if self.stale:
            self.useful, self.needed = steps, self.counts.copy()
        return self.stale or nearer


def _counts(resource: str) -> bool:
    """Whether it is waste where the resource is left free."""
    return resource in (CPU, MEMORY) or is_extended(resource)


def _merit(found: Added, objective: Objective) -> tuple[float, ...]:
    nodes = sum(found.nodes.values())
    first = {Objective.NODES: nodes, Objective.WASTE: found.waste, Objective.PRICE: found.price or 0.0}
    return (first[objective], nodes, found.waste)


def _next_merit(objective: Objective, placed: int, waste: float, price: float | None) -> tuple[float, ...]:
    first = {
        Objective.NODES: -placed,
        Objective.WASTE: waste,
        Objective.PRICE: (price or 0.0) / placed,
    }
    return (first[objective], -placed, waste)
