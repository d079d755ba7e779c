"""What a planner may ask of the engine, on the ground of a group's cycle."""

from dataclasses import dataclass, field, replace

from berth.framework.attempt import Attempt
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import FitError
from berth.framework.node_scores import NodeScores
from berth.framework.status import PluginError, Status
from berth.objects.pod import Pod
from berth.pod_groups.group_algorithm import Ground, GroupQuestion
from berth.pod_groups.scored_pods import ScoredPods
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot


@dataclass(slots=True)
class EngineGround:
    """Implements berth.framework.group_plans.PlanningGround; a solver may use 1 / `share` of the budget."""

    ground: Ground
    question: GroupQuestion
    scoring: ScoredPods
    share: int
    _trials: int = field(init=False)

    def __post_init__(self) -> None:
        self._trials = self.ground.cache.trials

    @property
    def nodes(self) -> Snapshot:
        """The snapshot of the cycle."""
        return self.ground.snapshot

    @property
    def seconds_left(self) -> float:
        """The solver's share of the cycle's budget."""
        return self.question.meter.limit_seconds / self.share

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
