"""The ground of a group's cycle as a planner sees it: asked for scores, and for what comes of a plan."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from berth.framework.attempt import Attempt
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import FitError
from berth.framework.group_plans import GroupPlan, TriedPlan
from berth.framework.node_scores import NodeScores
from berth.framework.status import PluginError, Status
from berth.objects.pod import Pod
from berth.pod_groups.group_algorithm import Ground, GroupQuestion, try_group, try_until_placed
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

    ground: Ground
    question: GroupQuestion
    scoring: ScoredPods
    _trials: int = field(init=False)

    def __post_init__(self) -> None:
        self._trials = self.ground.cache.trials

    @classmethod
    def of(cls, ground: Ground, question: GroupQuestion) -> "PlanningStage":
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

    async def one_by_one(self) -> TriedPlan | None:
        """What comes of trying one pod after the other, each once; None where a plugin fails."""
        stage = replace(self.ground, algorithm=self.scoring)
        return _tried(await try_group(stage, self.question))

    async def tried(self, plan: GroupPlan) -> TriedPlan | None:
        """What comes of the plan."""
        meter = self.question.meter
        if meter.used_seconds >= meter.limit_seconds / SHARE:
            return None
        stage = replace(self.ground, algorithm=replace(self.scoring, plan=plan))
        question = replace(self.question, members=in_turn(self.question, plan))
        return _tried(await try_until_placed(stage, question))

    async def scores(self, pod: Pod) -> NodeScores | None:
        """The nodes that the pod fits on, with their scores."""
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

    def place(self, pod: PodInfo) -> None:
        """Count the pod on its node."""
        self.ground.cache.try_pod(self.ground.snapshot, 1, pod)

    def take_back(self) -> None:
        """Take back all that was placed."""
        self.ground.cache.undo_trials(self.ground.snapshot, self._trials)


def in_turn(question: GroupQuestion, plan: GroupPlan) -> Sequence[Member]:
    """The group's pods in the plan's order, those that it leaves out behind them."""
    turn = {uid: i for i, uid in enumerate(plan.node_of)}
    return sorted(question.members, key=lambda member: turn.get(member.pod.uid, len(turn)))


def _tried(result: GroupResult) -> TriedPlan | None:
    if result.broken:
        return None
    members = result.members.values()
    counts = Counter({one.attempt.pod.priority: 0 for one in members})
    counts.update(one.attempt.pod.priority for one in members if one.node_name)
    total = sum(one.attempt.record.score or 0 for one in members if one.node_name)
    worth = result.status.ok, tuple(counts[p] for p in sorted(counts, reverse=True)), total
    node_of = {uid: one.node_name for uid, one in result.members.items() if one.node_name}
    return TriedPlan(worth, GroupPlan(node_of))
