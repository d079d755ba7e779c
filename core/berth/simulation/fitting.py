"""Which new nodes would make pods fit: how many of each shape alone, and the best mixture of shapes.

    pods --> on the nodes that are there --> left --+--> one node of a shape, those left, one node more ...
                                                    +--> the shape that serves the objective best, again ...

Pods are placed one by one in the order of their priorities, and those that are left are tried again after
every node, so that the answer is what adding nodes one by one to the cluster would come to. Nothing is
preempted for them. A shape is given up at the first node of it that makes no pod fit.

Called by: berth.simulation_service.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from berth.framework.status import Status
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.objects.resource_names import CPU, MEMORY, is_extended
from berth.simulation.changes import renamed
from berth.simulation.engine import Options, Simulation, after
from berth.simulation.errors import InputError
from berth.simulation.inputs import ClusterInput
from berth.simulation.one_by_one import OneByOne, Placed, check_alone, without_post_filter
from berth.simulation.plugin_settings import check_in_process

Pace = Callable[[], AbstractContextManager[None]]
"""Entered for each step, so that others have their turn between two; what it raises ends the work."""
Step = Node | Placed
T = TypeVar("T")
NOT_TRIED: Final = Status()


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


class Left(NamedTuple):
    """A pod that has no node, and why; the message is kube-scheduler's."""

    pod: Pod
    status: Status


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
        check_alone(pod, {profile.scheduler_name for profile in options.loaded.profiles})

    async def run(fitting: Fitting) -> Fit:
        left = await fitting.place([Left(pod, NOT_TRIED) for pod in in_order(pods)])
        start = len(fitting.steps)
        alone = [await fitting.alone(shape, left, start) for shape in shapes]
        mixture = await fitting.mixed(shapes, left, start, objective)
        best = min((mixture, *alone), key=lambda each: (len(each.left), *_merit(each, objective)))
        return Fit(len(pods) - len(left), left, alone, best)

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
        self._names = {node.name for node in self.simulation.nodes()}
        self._number = 0

    # Pods.

    async def place(self, pods: Sequence[Left]) -> list[Left]:
        """Place those that fit, and give those that are left with the reason, in the same order.

        A pod that is placed may make room for one that was tried before it, by affinity: all are tried again
        until none is placed any more. Chance begins anew with each call, so that what was tried before and
        taken back does not count.
        """
        self.simulation.chance.seed(self.simulation.options.seed)
        left = list(pods)
        while left:
            before = len(left)
            left = await self._tried([each.pod for each in left])
            if len(left) == before:
                break
        return left

    async def _tried(self, pods: Sequence[Pod]) -> list[Left]:
        left: list[Left] = []
        refused: dict[int, Status] = {}
        for pod in pods:
            # As long as nothing is placed, pods of one template have one answer.
            status = refused.get(id(pod.template))
            if status is None:
                with self.pace():
                    answer = await self._one_by_one.place(pod)
                if isinstance(answer, Placed):
                    self.steps.append(answer)
                    refused.clear()
                    continue
                status = refused[id(pod.template)] = answer
            left.append(Left(pod, status))
        return left

    # Nodes.

    def add(self, shape: Shape) -> None:
        """Add a node of that shape, under a name of its own."""
        while (name := f"{shape.node.name}-{self._number}") in self._names:
            self._number += 1
        self._number += 1
        node = renamed(shape.node, name)
        with self.pace():
            self._one_by_one.add(node)
        self.steps.append(node)

    def waste(self, since: int) -> float:
        """The part of the nodes added since that step that is left free, from 0 to 1."""
        core = self.simulation.core
        core.cache.update_snapshot(core.snapshot)
        wasted = [self._free(step) for step in self.steps[since:] if isinstance(step, Node)]
        return round(sum(wasted) / len(wasted), 6) if wasted else 0.0

    def _free(self, node: Node) -> float:
        snapshot = self.simulation.core.snapshot
        row, parts = snapshot.row_of[node.name], []
        for name in node.status.allocatable:
            offered = snapshot.offered(name) if name in (CPU, MEMORY) or is_extended(name) else None
            if offered is not None and (there := int(offered[row])) > 0:
                parts.append(max(0.0, 1 - int(snapshot.held(name)[row]) / there))
        return sum(parts) / len(parts) if parts else 0.0

    # Back again.

    async def back_to(self, count: int) -> None:
        """Take back all steps but the first so many, the latest first."""
        core = self.simulation.core
        while len(self.steps) > count:
            step = self.steps.pop()
            if isinstance(step, Placed):
                await self._one_by_one.take_back(step)
            else:
                self._one_by_one.remove(step)
        core.cache.update_snapshot(core.snapshot)

    # Answers.

    async def alone(self, shape: Shape, left: Sequence[Left], start: int) -> Added:
        """What nodes of one shape come to, from `start` on, and back to it."""
        remaining, count = list(left), 0
        while remaining and count < shape.most:
            before = len(self.steps)
            self.add(shape)
            fewer = await self.place(remaining)
            helped = len(fewer) < len(remaining)
            # The reasons that count the new node say why it is of no use.
            remaining = fewer
            if not helped:
                await self.back_to(before)
                break
            count += 1
        found = self._found({shape.name: count}, {shape.name: shape}, left, remaining, start)
        await self.back_to(start)
        return found

    async def mixed(
        self, shapes: Sequence[Shape], left: Sequence[Left], start: int, objective: Objective
    ) -> Added:
        """What adding the best next node comes to, again and again, from `start` on, and back to it."""
        remaining, counts = list(left), Counter[str]()
        while remaining:
            candidates = [shape for shape in shapes if counts[shape.name] < shape.most]
            best = await self._best_next(candidates, remaining, objective)
            if best is None:
                break
            self.add(best)
            remaining = await self.place(remaining)
            counts[best.name] += 1
        found = self._found(dict(counts), {shape.name: shape for shape in shapes}, left, remaining, start)
        await self.back_to(start)
        return found

    async def _best_next(
        self, shapes: Sequence[Shape], left: Sequence[Left], objective: Objective
    ) -> Shape | None:
        """The shape of which one node serves best, the first of equals; None where none makes a pod fit."""
        start, best = len(self.steps), None
        for number, shape in enumerate(shapes):
            self.add(shape)
            placed = len(left) - len(await self.place(left))
            if placed:
                merit = _next_merit(objective, placed, self.waste(start), shape.price)
                best = min(best or (merit, number, shape), (merit, number, shape), key=lambda each: each[:2])
            await self.back_to(start)
        return None if best is None else best[2]

    def _found(
        self,
        counts: dict[str, int],
        shapes: dict[str, Shape],
        before: Sequence[Left],
        left: Sequence[Left],
        start: int,
    ) -> Added:
        prices = [(shapes[name].price, count) for name, count in counts.items()]
        price = None if any(p is None for p, _ in prices) else sum((p or 0.0) * n for p, n in prices)
        counts = {name: count for name, count in counts.items() if count}
        return Added(counts, len(before) - len(left), left, self.waste(start), price)


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
