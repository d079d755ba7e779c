"""Consolidation: pods move so that a pod or a group fits which waits because room is in pieces.

    what waits --> the pods of each node that would make room, fewest first --> tried by the planner
                                                                            |
          all of them find another node, and what waits fits <--------------+--> the next choice

Nothing is worse off: each pod that moves has a node of the engine's before the first is evicted, and none has
a higher priority than what it moves for. KAI Scheduler has an action of that name, the descheduler has none.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from berth.config.descheduling.policy import ConsolidationArgs
from berth.descheduling.simulated_cluster import SimulatedCluster, anew
from berth.descheduling.strategies.strategy import (
    EvictionCandidate,
    EvictionProposal,
    Filter,
    Judge,
    Judgement,
    Scene,
)
from berth.descheduling.waiting_units import MAX_WAITING, WaitingUnit
from berth.framework.pluralize import pluralize
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Ints
from berth.snapshot.pod_info import PodInfo

MAX_CHOICES: Final = 5
"""This many sets of pods are tried for one that waits."""
MAX_NODES: Final = 10
"""This many nodes are asked of the engine for one pod of what waits, those with fewest pods to move first."""

MAX_DOMAINS: Final = 20
"""This many domains of a topology are tried for one group, the largest first."""


class _Choice(NamedTuple):
    """Pods whose leaving gives a node enough of every resource."""

    moves: tuple[Pod, ...]
    node: str


class Consolidation:
    """Makes room for what waits by moving pods, not by evicting them for good."""

    def __init__(self, args: ConsolidationArgs) -> None:
        self._args = args
        self._filter = Filter(args.evictable_namespaces)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """For each that waits the sets of pods to try, fewest pods first."""
        found: list[EvictionCandidate] = []
        waiting = [
            unit for unit in scene.simulated.waiting.without(()) if unit.priority >= self._args.least_priority
        ]
        for unit in waiting[:MAX_WAITING]:
            waits = f"{unit.name} waits for room"
            sets = {tuple(pod.uid for pod in moves): moves async for moves in self._sets(scene, unit)}
            chosen = sorted(sets.values(), key=len)[:MAX_CHOICES]
            found += [EvictionCandidate(moves, waits, for_unit=unit) for moves in chosen]
            if not sets:
                most = pluralize(self._args.max_moves, "pod")
                why_not = f"it would not fit if up to {most} of no higher priority moved to other nodes"
                found.append(EvictionCandidate((), waits, for_unit=unit, why_not=why_not))
        return EvictionProposal(found, "nothing waits that could get room")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:  # noqa: ARG002 - the planner tries what waits
        """Any node will do on which it leaves enough room: what waits is tried before, and at the end."""
        own = pod.node_name
        return lambda node: Judgement(True, f"{own} gets room, {node} has it")

    async def _sets(self, scene: Scene, unit: WaitingUnit) -> AsyncIterator[tuple[Pod, ...]]:
        """Sets of pods of which each may make the unit fit: by the node to begin with, or its domain."""
        simulated = scene.simulated
        movable = self._movable(scene, unit)
        for begin in range(MAX_CHOICES if unit.group is None else 1):
            for within in _domains(simulated, unit):
                with simulated.trial():
                    moves = await self._for_all(simulated, unit, movable, within, begin)
                if moves:
                    yield moves

    def _movable(self, scene: Scene, unit: WaitingUnit) -> dict[str, list[Pod]]:
        by_node: dict[str, list[Pod]] = {}
        for pod in self._filter.among(scene.pods()):
            if pod.priority <= unit.priority and scene.may_go(pod):
                by_node.setdefault(pod.node_name, []).append(pod)
        return by_node

    async def _for_all(
        self,
        simulated: SimulatedCluster,
        unit: WaitingUnit,
        movable: Mapping[str, Sequence[Pod]],
        within: frozenset[str] | None,
        begin: int,
    ) -> tuple[Pod, ...]:
        """The pods to move so that the unit's pods find nodes one by one; none where they do not."""
        moves: list[Pod] = []
        gone: set[str] = set()
        for pod in unit.pods:
            chosen = await simulated.chosen(pod)
            inside = [node for node in chosen.nodes if within is None or node in within]
            if inside:
                simulated.put_in(pod, inside[0])
                continue
            there = {
                node: [each for each in pods if each.uid not in gone]
                for node, pods in movable.items()
                if within is None or node in within
            }
            choice = await self._cheapest(simulated, pod, there, begin if not moves else 0)
            if choice is None or len(moves) + len(choice.moves) > self._args.max_moves:
                # A gang may need fewer than all of its pods: the planner sees.
                return tuple(moves)
            for each in choice.moves:
                simulated.take_out(each)
                gone.add(each.uid)
            moves += choice.moves
            if not await self._moved(simulated, choice.moves, {each.node_name for each in moves}):
                return ()
            simulated.put_in(pod, choice.node)
        return tuple(moves)

    async def _moved(
        self, simulated: SimulatedCluster, moves: Sequence[Pod], cleared: Collection[str]
    ) -> bool:
        """Try to put the pods on other nodes than those that are cleared; whether all find one.

        So the next node to clear is none that they go to.
        """
        for each in moves:
            chosen = await simulated.chosen(anew(each, simulated.now))
            others = [node for node in chosen.nodes if node not in cleared]
            if not others:
                return False
            simulated.put_in(anew(each, simulated.now), others[0])
        return True

    async def _cheapest(
        self, simulated: SimulatedCluster, pod: Pod, movable: Mapping[str, Sequence[Pod]], skipped: int
    ) -> _Choice | None:
        """The node that takes the pod once fewest pods have left it, but for so many such nodes."""
        choices = sorted(
            _choices(simulated, pod, movable), key=lambda choice: (len(choice.moves), choice.node)
        )
        for choice in choices[:MAX_NODES]:
            with simulated.trial():
                for each in choice.moves:
                    simulated.take_out(each)
                fits = await simulated.fits_on(pod, choice.node)
            if fits and not skipped:
                return choice
            skipped -= fits
        return None


def _choices(
    simulated: SimulatedCluster, pod: Pod, movable: Mapping[str, Sequence[Pod]]
) -> Iterator[_Choice]:
    """For each node with pods that may move the fewest of them that make room, by resources alone."""
    wanted = PodInfo(pod).requests
    names = list(wanted)
    least = np.array([wanted[name] for name in names], dtype=np.int64)
    columns = _free(simulated, names)
    for node, pods in movable.items():
        row = simulated.snapshot.row_of[node]
        short = least - columns[:, row]
        moves = _fewest(short, names, pods)
        if moves:
            yield _Choice(moves, node)


def _free(simulated: SimulatedCluster, names: Sequence[str]) -> Ints:
    """What nodes have left of each resource. Shapes: result int64 (r, n)."""
    snapshot = simulated.snapshot
    nothing = np.zeros(len(snapshot), dtype=np.int64)
    rows = []
    for name in names:
        offered = snapshot.offered(name)
        rows.append(nothing if offered is None else offered - snapshot.held(name))
    return np.array(rows, dtype=np.int64).reshape(len(names), len(snapshot))


def _fewest(short: Ints, names: Sequence[str], pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """Few of the pods that hold what is short; none where all of them do not.

    One pod where one does, the smallest such; else those that hold most of it, and none that is not needed.
    Shapes: short int64 (r,), at most 0 where there is enough.
    """
    if not pods:
        return ()
    held = np.array([[PodInfo(pod).requests.get(name, 0) for name in names] for pod in pods], dtype=np.int64)
    lacking = short > 0
    if not lacking.any():
        # Something other than a resource: ports, affinity. One pod at a time is tried.
        return (pods[0],)
    scale = np.maximum(short, 1)
    weight = np.minimum(held / scale, 1.0)[:, lacking].sum(axis=1)
    enough = np.flatnonzero((held >= short).all(axis=1))
    if enough.size:
        return (pods[int(enough[held[enough].sum(axis=1).argmin()])],)
    chosen: list[int] = []
    for index in np.argsort(-weight, kind="stable").tolist():
        chosen.append(index)
        if (held[chosen].sum(axis=0) >= short).all():
            break
    else:
        return ()
    for index in chosen[::-1]:
        others = [each for each in chosen if each != index]
        if others and (held[others].sum(axis=0) >= short).all():
            chosen = others
    return tuple(pods[index] for index in chosen)


def _domains(simulated: SimulatedCluster, unit: WaitingUnit) -> Iterator[frozenset[str] | None]:
    """Where the unit's pods may be together: each domain of its group's topology, or anywhere."""
    key = simulated.topology_key(unit.group)
    if not key:
        yield None
        return
    domains: dict[str, list[str]] = {}
    for node in simulated.nodes.values():
        if key in node.labels:
            domains.setdefault(node.labels[key], []).append(node.name)
    largest = sorted(domains.items(), key=lambda domain: (-len(domain[1]), domain[0]))
    for _, nodes in largest[:MAX_DOMAINS]:
        yield frozenset(nodes)
