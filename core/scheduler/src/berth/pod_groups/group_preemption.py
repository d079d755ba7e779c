"""Room for a whole group, asked of the profile's preemption; and the ground on which that tries victims.

Source: pkg/scheduler/schedule_one_podgroup.go runWorkloadAwarePreemption (Kubernetes v1.36),
podGroupCycle (v1.37).
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
import numpy as np

from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.interface import PodGroupPostFilterPlugin, PodGroupPostFilterResult
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, kind_of
from berth.framework.status import Code, Status, failed, unschedulable
from berth.pod_groups.group_algorithm import GroupPlacementTrial, GroupQuestion, SchedulingContext
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.members import Member
from berth.snapshot.pod_info import PodInfo

Algorithm = Callable[[GroupQuestion], Awaitable[GroupResult]]

NOT_REGISTERED = unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
GOES_TO_ONE_PLACE = unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


async def preempt_for_group(
    ground: SchedulingContext,
    question: GroupQuestion,
    trees: GroupTrees,
    algorithm: Algorithm,
    found: GroupResult,
) -> PodGroupPostFilterResult | None:
    """Success where victims are on their way out, else why not, or what broke; None where nothing is said.

    `algorithm` is what the group was found unschedulable by, placements included, and `found` what it said.
    """
    every = question.framework.plugins.post_filter
    plugins = [p for p in every if isinstance(p, PodGroupPostFilterPlugin)]
    if ground.counting is None:
        plugins = [p for p in plugins if p.in_process][:1]
    if not plugins:
        return None if ground.counting is not None else PodGroupPostFilterResult(NOT_REGISTERED)
    group = trees.get(question.key)
    if group is None:
        named = f'{kind_of(question.key)}.scheduling.k8s.io "{question.key.name}" not found'
        text = f"failed to get pod group object: {named}"
        return PodGroupPostFilterResult(failed(text))
    constraints = group.spec.scheduling_constraints
    if constraints is not None and constraints.topology and ground.counting is None:
        return PodGroupPostFilterResult(GOES_TO_ONE_PLACE)
    diagnosis = _first_without_a_node(found)
    if diagnosis is not None:
        question.state.write(Diagnosis, diagnosis)
    reasons: tuple[str, ...] = ()
    for plugin in plugins:
        result = await _asked(plugin, group, _WithoutVictims(ground, question, algorithm))
        if not result.status.rejected:
            return result
        reasons += result.status.reasons
        if result.status.code is not Code.UNSCHEDULABLE:
            break
    return PodGroupPostFilterResult(Status(result.status.code, reasons), result.nominations)


def _first_without_a_node(found: GroupResult) -> Diagnosis | None:
    """Why the first of the pods that found no node did not, for plugins that choose where to make room."""
    errors = (one.status.error for one in found.members.values() if not one.node_name)
    return next((error.diagnosis for error in errors if isinstance(error, FitError)), None)


async def _asked(
    plugin: PodGroupPostFilterPlugin, group: AnyGroup, trial: "_WithoutVictims"
) -> PodGroupPostFilterResult:
    ground, question = trial.ground, trial.question
    pods, trials = [member.pod for member in question.members], ground.cache.trials
    try:
        return await plugin.pod_group_post_filter(question.state, group, pods, trial)
    except OverBudgetError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this group's attempt
        return PodGroupPostFilterResult(failed(error))
    finally:
        ground.cache.undo_trials(ground.snapshot, trials)


class _WithoutVictims(msgspec.Struct):
    """Implements berth.framework.preempting.GroupTrial."""

    ground: SchedulingContext
    question: GroupQuestion
    algorithm: Algorithm
    _result: GroupResult = msgspec.field(default_factory=GroupResult)

    @property
    def found(self) -> Mapping[str, str]:
        """The nodes that pods found when `fits` was called last, by the pods' UIDs."""
        return {uid: one.node_name for uid, one in self._result.members.items() if one.node_name}

    def take_out(self, pod: PodInfo) -> None:
        """Think a placed pod away."""
        self.ground.cache.try_pod(self.ground.snapshot, -1, pod)

    def put_back(self, pod: PodInfo) -> None:
        """Think it back."""
        self.ground.cache.try_pod(self.ground.snapshot, 1, pod)

    async def fits(self) -> Status:
        """Whether the group would be scheduled now."""
        self._result = await self.algorithm(msgspec.structs.replace(self.question, simulated=True))
        status = self._result.status
        if isinstance(status.error, OverBudgetError):
            raise status.error
        return status

    async def still_fits(self) -> bool:
        """Whether it would be with those who were put back: from 1.37 on, each pod where it is already."""
        if self.ground.counting is None:
            return (await self.fits()).ok
        trial = GroupPlacementTrial.of(self.ground, msgspec.structs.replace(self.question, simulated=True))
        found, rows = self.found, self.ground.snapshot.row_of
        try:
            for member in self.question.members:
                name = found.get(member.pod.uid)
                if name and not await self._fits_on(trial, member, rows[name]):
                    return False
                if self.question.meter.worked("a pod group"):
                    await self.question.meter.breathe()
            return True
        finally:
            await trial.keep(0)

    async def _fits_on(self, trial: GroupPlacementTrial, member: Member, row: int) -> bool:
        await trial.go_on_with(member, np.array([row]))
        one = trial.result.members[member.pod.uid]
        if isinstance(one.status.error, OverBudgetError):
            raise one.status.error
        return bool(one.node_name)
