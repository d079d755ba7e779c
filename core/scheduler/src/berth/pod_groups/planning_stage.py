"""The ground of a group's cycle as a planner sees it: asked for scores, and for what comes of a plan."""

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import FitError
from berth.framework.group_plans import GroupPlan, TriedPlan
from berth.framework.node_scores import NodeScores
from berth.framework.status import PluginError, Status
from berth.objects.pods.pod import Pod
from berth.pod_groups.group_algorithm import GroupPlacementTrial, GroupQuestion, SchedulingContext, try_group
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.members import Member
from berth.pod_groups.scored_pods import ScoredPods
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

SHARE = 4
"""No plan is tried once one part in so many of the budget of the cycle is used; a solver gets as much."""


@dataclass(slots=True)
class PlanningStage:
    """Implements berth.framework.group_plans.PlanningGround, on rehearsals: the question is a simulation."""

    ground: SchedulingContext
    question: GroupQuestion
    scoring: ScoredPods
    broken: bool = field(default=False, init=False)
    """Whether a plugin failed on the way: another time, other plans may be found."""
    may_gain: bool = field(default=True, init=False)
    """Whether a plan may place a pod: where all nodes were rejected for each, none can be the first."""
    _placed_before: int = field(init=False)
    _trial: GroupPlacementTrial = field(init=False)
    _fit_nowhere: AbstractSet[str] = field(default=frozenset(), init=False)
    _followers: AbstractSet[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._placed_before = self.ground.cache.trials
        self._trial = GroupPlacementTrial.of(self.ground, self.question)

    @classmethod
    def of(cls, ground: SchedulingContext, question: GroupQuestion) -> "PlanningStage":
        """The stage for a group's cycle on that ground."""
        return cls(ground, question, ScoredPods.on(ground))

    @property
    def nodes(self) -> Snapshot:
        """The snapshot of the cycle."""
        return self.ground.snapshot

    @property
    def seconds_left(self) -> float:
        """The solver's share of the cycle's budget."""
        return self.question.meter.limit_seconds / SHARE

    @property
    def attempts(self) -> int:
        """How often a pod was tried for plans."""
        return self._trial.attempts

    async def one_by_one(self) -> TriedPlan | None:
        """What comes of trying one pod after the other, each once; None where a plugin fails."""
        stage = msgspec.structs.replace(self.ground, algorithm=self.scoring)
        result = await try_group(stage, self.question)
        self.may_gain = any(not isinstance(one.status.error, FitError) for one in result.members.values())
        return self._as_tried(result)

    def leave_out(self, fit_nowhere: AbstractSet[str], followers: AbstractSet[str]) -> None:
        """Leave pods that fit nowhere out of trials, and try followers alone again."""
        self._fit_nowhere, self._followers = fit_nowhere, followers

    async def tried(self, plan: GroupPlan) -> TriedPlan | None:
        """What comes of the plan; the pods with which it begins as the one before it stay where they are."""
        meter, trial = self.question.meter, self._trial
        if meter.used_seconds >= meter.limit_seconds / SHARE:
            return None
        await trial.keep(_alike(trial.steps, list(plan.node_of.items())))
        trial.ground = msgspec.structs.replace(self.ground, algorithm=self.scoring.by(plan))
        left_out = self._fit_nowhere | trial.result.members.keys()
        members = [one for one in in_turn(self.question, plan) if one.pod.uid not in left_out]
        followers = self._followers
        await trial.go_on(members, {one.pod.uid for one in members} if followers is None else followers)
        return self._as_tried(trial.result)

    async def scores(self, pod: Pod) -> NodeScores | None:
        """The nodes that the pod fits on, with their scores."""
        await self._trial.keep(0)
        question = self.question
        record = replace(question.members[0].record, intervals=[])
        state = CycleState(question.meter)
        state.write(CycleRecord, record)
        state.write(PodGroupStates, question.states.copy_of(question.key))
        attempt = Attempt(pod, self.nodes, state, record, question.within)
        scores = await self.scoring.scores(question.framework, attempt)
        if question.meter.worked("planning of a pod group"):
            await question.meter.breathe()
        if not isinstance(scores, Status):
            return scores
        if isinstance(scores.error, FitError):
            return None
        raise PluginError(scores.message)

    async def place(self, pods: Iterable[PodInfo]) -> None:
        """Count the pods on their nodes."""
        await self._trial.keep(0)
        for pod in pods:
            self.ground.cache.try_pod(self.ground.snapshot, 1, pod)

    async def take_back(self) -> None:
        """Take back all that was placed."""
        await self._trial.keep(0)
        self.ground.cache.undo_trials(self.ground.snapshot, self._placed_before)

    def _as_tried(self, result: GroupResult) -> TriedPlan | None:
        if result.broken:
            self.broken = True
            return None
        placed = [one for one in result.members.values() if one.node_name]
        counts = Counter({member.pod.priority: 0 for member in self.question.members})
        counts.update(one.attempt.pod.priority for one in placed)
        total = sum(one.attempt.record.score or 0 for one in placed)
        worth = result.status.ok, tuple(counts[p] for p in sorted(counts, reverse=True)), total
        return TriedPlan(worth, GroupPlan({one.attempt.pod.uid: one.node_name for one in placed}))


def _alike(steps: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]) -> int:
    """With how many equal steps both begin."""
    pairs = enumerate(zip(steps, others, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(steps), len(others)))


def in_turn(question: GroupQuestion, plan: GroupPlan) -> Sequence[Member]:
    """The group's pods in the plan's order, those that it leaves out behind them."""
    turn = {uid: i for i, uid in enumerate(plan.node_of)}
    return sorted(question.members, key=lambda member: turn.get(member.pod.uid, len(turn)))
