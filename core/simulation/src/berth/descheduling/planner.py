"""From candidates to a plan: each move is tried with all moves before it made, by the engine that schedules.

    candidate --> protected? --> budgets, limits --> taken out on trial --> pods that wait are placed first
                                                            |
         left alone, and why <--no-- better there? <-- node that the engine chooses
                                          |
                                          +--yes--> moved in the simulated, counted against budgets

A pod moves once. Strategies are run again until none of them moves a pod: what a move makes possible, or
makes bad, is seen in the same plan.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec

from berth.config.descheduling.policy import Policy, Profile
from berth.descheduling.cluster import ClusterObjects
from berth.descheduling.evictor import Evictor
from berth.descheduling.limits import Limits
from berth.descheduling.load.load import Load
from berth.descheduling.load.recorded import KINDS as METRICS_KINDS
from berth.descheduling.plan import DeschedulePlan, IdleStrategy, LeftAlone, Move
from berth.descheduling.simulated_cluster import SimulatedCluster, anew
from berth.descheduling.strategies import READS_CONTAINERS, strategy_of
from berth.descheduling.strategies.strategy import EvictionCandidate, Scene, Strategy
from berth.descheduling.waiting_units import MAX_WAITING
from berth.framework.pluralize import pluralize
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.selector_text import parse_label_selector
from berth.objects.workloads import PodDisruptionBudget
from berth.queue.pools.pod_kinds import like
from berth.simulation.cluster.disruption_budgets import Budgets
from berth.simulation.placing.one_by_one import without_post_filter
from berth.simulation.plugins.plugin_settings import check_in_process
from berth.simulation.reading.inputs import FINISHED_POD
from berth.simulation.running.engine import Simulation, after
from berth.simulation.running.options import SimulationOptions
from berth.simulation.text import left_out_lines

MAX_PASSES: Final = 50
"""Every pass but the last moves a pod that has not moved before; after so many a plan ends as it is."""


def plan(
    cluster: ClusterObjects, policy: Policy, options: SimulationOptions, now: datetime
) -> DeschedulePlan:
    """What to evict from the cluster, and what becomes of it under the scheduler's configuration.

    Raises: InputError, PluginsError, PolicyError, BuildError.
    """

    async def run(simulation: Simulation) -> DeschedulePlan:
        return await _Planning(cluster, policy, SimulatedCluster(simulation, now=now)).plan()

    check_in_process(options.loaded, options.plugins)
    # Nothing is preempted for a pod that is made anew: that would be another pod's eviction.
    return after(cluster.objects, without_post_filter(options), run)


class _Step(NamedTuple):
    """One strategy of one profile."""

    profile: Profile
    evictor: Evictor
    name: str
    strategy: Strategy


class _Place(NamedTuple):
    """The nodes that score best alike, what the pod gains there, and the pods that got room before it."""

    nodes: tuple[str, ...]
    gain: str
    placed: Sequence[Pod] = ()


class _Trial(NamedTuple):
    """What came of trying a candidate: its moves and the pods that got room, or why it is left alone."""

    why_not: str = ""
    moves: tuple[tuple[Pod, Move], ...] = ()
    settled: tuple[Pod, ...] = ()


class _Alike(NamedTuple):
    """Pods of one template on one node that hold the same there, and use the same by metrics.

    One that was resized differs.
    """

    kind: PodTemplate | str
    node: str
    requests: tuple[tuple[str, int], ...]
    used: tuple[tuple[str, float], ...]


@dataclass(slots=True)
class _Planning:
    """One plan in the making."""

    cluster: ClusterObjects
    policy: Policy
    simulated: SimulatedCluster
    moves: list[Move] = field(default_factory=list)
    left_alone: dict[tuple[str, str], LeftAlone] = field(default_factory=dict)
    _known: dict[tuple[Strategy, _Alike], str] = field(default_factory=dict)
    """Why pods that are alike stay, by strategy; for as long as nothing moves."""
    _why_none: dict[tuple[str, str], str] = field(default_factory=dict)
    """By profile and strategy: why it proposed no pod when that was so first."""
    _failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """By profile and strategy: why what it goes by could not be had."""
    _scene: Scene = field(init=False)
    _budgets: Budgets = field(init=False)
    _limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        tests = parse_label_selector(self.policy.node_selector)
        sources = {n.name for n in self.simulated.nodes.values() if all(test(n.labels) for test in tests)}
        self._scene = Scene(
            self.simulated, self.cluster.facts, self.cluster.ended, frozenset(sources), self.cluster.loads
        )
        self._budgets = Budgets(self.cluster.objects.of(PodDisruptionBudget).values())
        self._limits = Limits(self.policy)

    async def plan(self) -> DeschedulePlan:
        """Run all strategies until nothing moves."""
        steps = list(self._steps())
        for _ in range(MAX_PASSES):
            before = len(self.moves)
            self.left_alone.clear()
            for step in steps:
                await self._run(step)
            if len(self.moves) == before:
                break
        moved = {move.pod for move in self.moves}
        busy = {(each.profile, each.strategy) for each in self.moves}
        left = {each.strategy for each in self.left_alone.values()}
        return DeschedulePlan(
            nodes=len(self.simulated.nodes),
            pods=len(self.simulated.pods),
            moves=self.moves,
            left_alone=sorted(each for each in self.left_alone.values() if each.pod not in moved),
            idle=[
                IdleStrategy(*step, why)
                for step, why in self._why_none.items()
                if step not in busy and step[1] not in left and step not in self._failures
            ],
            notes=self._notes(),
            failures=[f"{name}: {why}" for (_, name), why in self._failures.items()],
        )

    def _steps(self) -> Iterable[_Step]:
        owners = Counter(
            owner.uid for pod in self.simulated.pods.values() for owner in pod.metadata.owner_references
        )
        for profile in self.policy.profiles:
            evictor = Evictor(profile.evictor, self.cluster, self.simulated.now, owners, self._budgets)
            for name, args in profile.strategies:
                yield _Step(profile, evictor, name, strategy_of(name, args))

    def _notes(self) -> list[str]:
        names = {name for profile in self.policy.profiles for name, _ in profile.strategies}
        wanting = sorted(names & READS_CONTAINERS)
        facts = self.cluster.facts.values()
        left_out = self.cluster.objects.left_out
        read = {FINISHED_POD, *METRICS_KINDS}
        notes = [*left_out_lines({kind: n for kind, n in left_out.items() if kind not in read})]
        loads = [each for each in self.cluster.loads.values() if isinstance(each, Load)]
        notes += filter(None, [each.unknown(self.simulated.nodes) for each in loads])
        if wanting and facts and not any(each.counted for each in facts):
            remedy = "read the cluster itself, or give `kubectl get pods -A -o yaml`"
            notes.append(f"no pod has statuses of containers, which {', '.join(wanting)} may read: {remedy}")
        if self.simulated.waiting.untried:
            notes.append(
                f"{self.simulated.waiting.untried} kinds of pods that wait were not tried for the room that "
                f"moves leave: {MAX_WAITING} of the highest priority were; delete pods that fit nowhere"
            )
        return notes

    async def _run(self, step: _Step) -> None:
        scene = msgspec.structs.replace(self._scene, may_go=partial(self._may_go, step))
        found = await step.strategy.candidates(scene)
        if not found.candidates:
            self._why_none.setdefault((step.profile.name, step.name), found.why_none)
        if found.failed:
            self._failures[step.profile.name, step.name] = found.why_none
        for candidate in found.candidates:
            if any(pod.uid in self._scene.stays for pod in candidate.pods) or self._has_room(candidate):
                continue
            why_not = await self._try(step, candidate)
            if why_not:
                self._leave(step, candidate, why_not)

    def _may_go(self, step: _Step, pod: Pod) -> bool:
        return not (
            step.evictor.why_not(pod) or self._budgets.why_not((pod,)) or self._limits.why_not((pod,))
        )

    def _has_room(self, candidate: EvictionCandidate) -> bool:
        """Whether what the candidate is for has got its room by another one."""
        if candidate.for_unit is None:
            return False
        return not any(self.simulated.waiting.waits(pod) for pod in candidate.for_unit.pods)

    def _leave(self, step: _Step, candidate: EvictionCandidate, why_not: str) -> None:
        unit = candidate.for_unit
        if unit is not None:
            self.left_alone[unit.name, step.name] = LeftAlone(
                unit.name, "", step.name, candidate.found, why_not
            )
            return
        for pod in candidate.pods:
            left = LeftAlone(pod.key, pod.node_name, step.name, candidate.found, why_not)
            self.left_alone[pod.key, step.name] = left

    async def _try(self, step: _Step, candidate: EvictionCandidate) -> str:
        """Make the candidate's moves; or why it is left alone."""
        pods = candidate.pods
        if candidate.why_not:
            return candidate.why_not
        for pod in pods:
            why_not = step.evictor.why_not(pod)
            if why_not:
                return why_not if len(pods) == 1 else f"{pod.key} has to stay: {why_not}"
        why_not = self._budgets.why_not(pods) or self._limits.why_not(pods)
        if why_not:
            return why_not
        if len(pods) > 1 or not candidate.needs_place or candidate.for_unit is not None:
            trial = await self._tried(step, candidate)
        else:
            trial = await self._tried_once(step, candidate)
        if not trial.why_not:
            self._make(step, trial)
            if candidate.for_unit is not None:
                self.left_alone.pop((candidate.for_unit.name, step.name), None)
        return trial.why_not

    async def _tried_once(self, step: _Step, candidate: EvictionCandidate) -> _Trial:
        """The trial of one pod; why it stays is worked out once for pods that are alike."""
        key = step.strategy, self._alike(candidate.pods[0])
        if key in self._known:
            return _Trial(self._known[key])
        trial = await self._tried(step, candidate)
        if trial.why_not:
            self._known[key] = trial.why_not
        return trial

    def _alike(self, pod: Pod) -> _Alike:
        """What a trial of the pod depends on: what is made anew, and what it leaves behind."""
        node = pod.node_name
        left = self.simulated.snapshot.pods[self.simulated.snapshot.row_of[node]][pod.uid].requests
        loads = [each.pods or {} for each in self.cluster.loads.values() if isinstance(each, Load)]
        used = tuple(amount for each in loads for amount in each.get(pod.key, {}).items())
        return _Alike(like(anew(pod, self.simulated.now)), node, tuple(left.items()), used)

    async def _tried(self, step: _Step, candidate: EvictionCandidate) -> _Trial:
        if not candidate.needs_place:
            (pod,) = candidate.pods
            judge = await step.strategy.judge_of(self._scene, pod)
            return _Trial(moves=((pod, _move(step, candidate, pod, _Place((), judge("").text))),))
        moves: list[tuple[Pod, Move]] = []
        settled: list[Pod] = []
        with self.simulated.trial():
            for pod in candidate.pods:
                self.simulated.take_out(pod)
                placed = await self.simulated.place_waiting(settled)
                settled += placed
                new = anew(pod, self.simulated.now)
                chosen = await self.simulated.chosen(new)
                nodes = candidate.beside_cleared(chosen.nodes)
                why_not, gain = await self._judged(step, candidate, pod, nodes)
                if not nodes or why_not:
                    return _Trial(why_not or f"no node would take it: {chosen.message}")
                self.simulated.put_in(new, nodes[0])
                moves.append((pod, _move(step, candidate, pod, _Place(nodes, gain, placed))))
        unit, has_room = candidate.for_unit, {pod.uid for pod in settled}
        if unit is not None and not any(pod.uid in has_room for pod in unit.pods):
            return _Trial(f"{unit.name} would wait still once {_moves_text(moves)}")
        return _Trial(moves=tuple(moves), settled=tuple(settled))

    async def _judged(
        self, step: _Step, candidate: EvictionCandidate, pod: Pod, nodes: tuple[str, ...]
    ) -> tuple[str, str]:
        """Why the pod stays, and what it gains on the first node: the scheduler may take any of them."""
        gain = ""
        judge = await step.strategy.judge_of(self._scene, pod)
        for node in nodes:
            if node == pod.node_name and not candidate.may_return:
                return f"the scheduler would place it on {node} again", ""
            judgement = judge(node)
            if not judgement.better:
                return f"the scheduler would place it on {node}: {judgement.text}", ""
            gain = gain or judgement.text
        return "", gain

    def _make(self, step: _Step, trial: _Trial) -> None:
        """Let the moves be so from now on."""
        self._known.clear()
        for pod in trial.settled:
            self.simulated.settle(pod)
            self._scene.moved.append((pod.placed_on(""), pod.node_name))
        for pod, move in trial.moves:
            self._budgets.take(pod)
            self._limits.take(pod)
            self._scene.taken[step.name, pod.node_name] += 1
            self._scene.stays.update((pod.uid, anew(pod, self.simulated.now).uid))
            if move.to:
                self.simulated.move(pod, move.to)
                self._scene.moved.append((pod, move.to))
                self._scene.given[step.name, move.to] += 1
            self.moves.append(msgspec.structs.replace(move, budgets=tuple(self._budgets.of(pod))))


def _moves_text(moves: Sequence[tuple[Pod, Move]]) -> str:
    first = f"{moves[0][1].pod} is on {moves[0][1].to}" if moves else "nothing has moved"
    return first if len(moves) < 2 else f"{first} and {pluralize(len(moves) - 1, 'other pod')} moved"  # noqa: PLR2004


def _move(step: _Step, candidate: EvictionCandidate, pod: Pod, found: _Place) -> Move:
    return Move(
        pod=pod.key,
        uid=pod.uid,
        from_=pod.node_name,
        to=found.nodes[0] if found.nodes else "",
        or_to=found.nodes[1:],
        profile=step.profile.name,
        strategy=step.name,
        found=candidate.found,
        gain=found.gain,
        group=_group_of(step, candidate),
        makes_room_for={each.key: each.node_name for each in found.placed},
    )


def _group_of(step: _Step, candidate: EvictionCandidate) -> str:
    if len(candidate.pods) < 2:  # noqa: PLR2004
        return ""
    unit = candidate.for_unit
    return f"{step.name} {candidate.pods[0].node_name if unit is None else unit.name}"
