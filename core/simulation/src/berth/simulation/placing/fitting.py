"""Which new nodes would make pods fit: how many of each shape alone, and the best mixture of shapes.

    pods --> on the nodes that are there --> left --+--> one node of a shape, those left, one node more ...
                                                    +--> the shape that serves the objective best, again ...

Pods are placed one by one in the order of their priorities, those of a pod group together, and pods without a
node are tried again after every new node, so that the answer is that of adding nodes one by one to the
cluster. Nothing is preempted for them. A shape is dropped at the first node of it that makes no pod fit and
no gang more complete; nodes after the last one that made a pod fit are not counted.

Called by: berth.simulation_service.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.placing.growing_cluster import GrowingCluster, UnplacedPods
from berth.simulation.placing.one_by_one import Left, Pace, check_scheduler_name, on_running
from berth.simulation.placing.shapes import AddableNode
from berth.simulation.plugins.plugin_settings import check_in_process
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.running.engine import Simulation
from berth.simulation.running.options import SimulationOptions

T = TypeVar("T")


class Objective(StrEnum):
    """What the best mixture minimizes."""

    NODES = "nodes"
    WASTE = "waste"
    PRICE = "price"


class Added(msgspec.Struct, frozen=True):
    """New nodes by shape, and their effect.

    `placed` are the pods that got a node because of the new ones. `waste` is the part of the new nodes
    that stays free, from 0 to 1: the mean over cpu, memory and the extended resources that each offers.
    """

    nodes: dict[str, int]
    placed: int
    left: Sequence[Left]
    waste: float
    price: float | None


class FittingNodes(msgspec.Struct, frozen=True):
    """The nodes that would make the pods fit. `placed` counts pods that fit without a new node."""

    placed: int
    left: Sequence[Left]
    shapes: list[Added]
    mixture: Added


def would_fit(
    cluster: ClusterInput,
    pods: Sequence[Pod],
    shapes: Sequence[AddableNode],
    options: SimulationOptions,
    *,
    objective: Objective = Objective.NODES,
    pace: Pace = nullcontext,
) -> FittingNodes:
    """Which shapes, and how many nodes of each, would make these pods fit. Deterministic.

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
        check_scheduler_name(pod, {profile.scheduler_name for profile in options.loaded.profiles})

    async def run(fitting: Fitting) -> FittingNodes:
        rest = await fitting.ask(pods)
        left, start = fitting.left(), len(fitting.steps)
        found = alone = [await fitting.alone(shape, rest, start) for shape in shapes]
        if len(shapes) != 1:
            found = [await fitting.mixed(shapes, rest, start, objective), *alone]
        best = min(found, key=lambda each: (len(each.left), *_merit(each, objective)))
        return FittingNodes(len(pods) - rest.left, left, alone, best)

    return on_cluster(cluster, options, run, pace)


def on_cluster(
    cluster: ClusterInput,
    options: SimulationOptions,
    then: Callable[["Fitting"], Coroutine[Any, Any, T]],
    pace: Pace = nullcontext,
) -> T:
    """The result of `then` on the cluster with its running pods; its pending pods are left out.

    Raises: as `would_fit`, and what `then` raises.
    """
    check_in_process(options.loaded, options.plugins)

    async def run(simulation: Simulation) -> T:
        return await then(Fitting(simulation, pace))

    return on_running(cluster, options, run, pace)


class Fitting(GrowingCluster):
    """Finds the effect of adding nodes of some shapes."""

    async def alone(self, shape: AddableNode, rest: UnplacedPods, start: int) -> Added:
        """The effect of nodes of one shape, from `start`; they are removed again."""
        trial = _Trial(rest, len(self.steps), needed=Counter({shape.name: 0}))
        while trial.rest.left and trial.counts[shape.name] < shape.most:
            if not trial.helped(shape, await self.grow(shape), len(self.steps)):
                break
        return await self._found(trial, [shape], rest, start)

    async def mixed(
        self, shapes: Sequence[AddableNode], rest: UnplacedPods, start: int, objective: Objective
    ) -> Added:
        """The effect of adding the best next node repeatedly, from `start`; they are removed again."""
        trial, candidates = _Trial(rest, len(self.steps)), list(shapes)
        while trial.rest.left:
            candidates = [shape for shape in candidates if trial.counts[shape.name] < shape.most]
            best = await self._best_next(candidates, trial.rest, objective)
            if best is None:
                break
            trial.helped(best, await self.grow(best), len(self.steps))
        return await self._found(trial, shapes, rest, start)

    async def _best_next(
        self, shapes: list[AddableNode], rest: UnplacedPods, objective: Objective
    ) -> AddableNode | None:
        """The shape of which one more node is best, the first of equals; None where no shape helps.

        Shapes that will never help are removed from `shapes`.
        """
        start, best = len(self.steps), None
        for number, shape in enumerate(list(shapes)):
            then = await self.grow(shape)
            placed, nearer = rest.left - then.left, then.nearer - rest.nearer
            if placed or nearer > 0:
                merit = _next_merit(objective, placed or nearer, self.waste(start), shape.price)
                found = (not placed, *merit), number, shape
                best = min(best or found, found, key=lambda each: each[:2])
            elif then.lasting:
                shapes.remove(shape)
            await self.back_to(start)
        return None if best is None else best[2]

    async def _found(
        self, trial: "_Trial", shapes: Sequence[AddableNode], before: UnplacedPods, start: int
    ) -> Added:
        """The trial's result; its nodes are removed again. Reasons include a last, useless node."""
        await self.place()
        left = self.left()
        await self.back_to(trial.useful)
        prices = {shape.name: shape.price for shape in shapes}
        known = [(prices[name], count) for name, count in trial.needed.items()]
        price = None if any(p is None for p, _ in known) else sum((p or 0.0) * n for p, n in known)
        counts = {name: count for name, count in trial.needed.items() if count}
        found = Added(counts, before.left - len(left), left, self.waste(start), price)
        await self.back_to(start)
        return found


@dataclass
class _Trial:
    """A trial of adding nodes one by one: how many, and how many up to the last one that made a pod fit.

    `useful` is the number of steps up to that one; later ones are undone.
    """

    rest: UnplacedPods
    useful: int
    counts: Counter[str] = field(default_factory=Counter)
    needed: Counter[str] = field(default_factory=Counter)

    def helped(self, shape: AddableNode, rest: UnplacedPods, steps: int) -> bool:
        """Record an added node; returns whether it made a pod fit or a gang more complete."""
        placed, nearer = rest.left < self.rest.left, rest.nearer > self.rest.nearer
        self.rest = rest
        self.counts[shape.name] += 1
        if placed:
            self.useful, self.needed = steps, self.counts.copy()
        return placed or nearer


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
