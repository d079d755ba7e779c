"""Whether a group may go: from Kubernetes 1.37 on by the number of its pods that have a node.

Asked before the first pod is tried and after each of them; up to 1.36 Permit plugins decide instead, pod by
pod.

Source: pkg/scheduler/schedule_one_podgroup.go podGroupSchedulingDefaultAlgorithm (Kubernetes v1.37),
algorithm_podgroup.go podGroupPotentiallyFeasible (v1.38).
"""

from collections.abc import Set as AbstractSet

import msgspec

from berth.evaluation.points.placement_plugins import run_placement_feasible
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import GroupFitError
from berth.framework.interface import PlacementProgress
from berth.framework.runtime import Framework
from berth.framework.status import Code, Status, failed
from berth.pod_groups.group_result import GroupResult, group_unschedulable
from berth.snapshot.pod_group_states import AnyKey

NONE_PLACED = "no pods were schedulable"


class Counting(msgspec.Struct, frozen=True):
    """Judges groups; what both fields say is the rule of the release (berth.config.releases)."""

    names_plugins: bool = False
    nominated_first: bool = False
    """Whether the placement that pods are nominated to is tried before all others, and taken if they fit."""

    async def verdict(
        self,
        framework: Framework,
        state: CycleState,
        group: AnyKey,
        progress: PlacementProgress,
        *,
        tried: bool,
    ) -> tuple[Status, bool]:
        """The group's status as things are, and whether more of its pods are to be tried.

        `state` is that of the attempt at the group. `tried`: whether a pod of it was tried already.
        """
        status = await run_placement_feasible(framework, state, group, progress)
        if status.code is Code.ERROR:
            return failed(f"failed to evaluate placement feasibility: {status.message}"), False
        if status.ok:
            return status, True
        waits = status.code is Code.WAIT
        return self._rejection(status, bare=tried and not waits), waits

    def _rejection(self, status: Status, *, bare: bool) -> Status:
        if self.names_plugins:
            return _naming(status.message, {status.plugin} - {""})
        if bare:
            return Status(Code.UNSCHEDULABLE, status.own_reasons)
        return group_unschedulable(*status.reasons)

    def whole(self, result: GroupResult) -> None:
        """A group that may go, though no pod was placed, has been turned down after all."""
        if result.status.ok and not result.assignments:
            result.status = _naming(NONE_PLACED, set()) if self.names_plugins else group_unschedulable()

    def nowhere(self, first: Status, placements: int) -> Status:
        """The status of a group that fits in none of so many placements; `first` is that of the first one."""
        text = f"0/{placements} placements are available, first placement status: {first.message}"
        if not self.names_plugins:
            return group_unschedulable(text)
        return _naming(text, first.error.plugins if isinstance(first.error, GroupFitError) else set())

    def of_placed(self, group: Status) -> Status:
        """What a pod is rejected with that has a node in vain, as the group was turned down."""
        return group if self.names_plugins else group_unschedulable(group.message)


def _naming(text: str, plugins: AbstractSet[str]) -> Status:
    return Status(Code.UNSCHEDULABLE, error=GroupFitError(text, plugins))
