"""Room for a whole group, asked of the profile's preemption; and the ground on which that tries victims.

Source: pkg/scheduler/schedule_one_podgroup.go runWorkloadAwarePreemption (Kubernetes v1.36).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from berth.framework.cycle_budget import OverBudgetError
from berth.framework.interface import PodGroupPostFilterPlugin
from berth.framework.listers import Store
from berth.framework.status import Status, failed, unschedulable
from berth.objects.pod_groups import PodGroup
from berth.pod_groups.group_algorithm import Ground, GroupQuestion
from berth.pod_groups.group_result import GroupResult
from berth.snapshot.pod_info import PodInfo

Algorithm = Callable[[GroupQuestion], Awaitable[GroupResult]]

NOT_REGISTERED = unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
GOES_TO_ONE_PLACE = unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


async def preempt_for_group(
    ground: Ground, question: GroupQuestion, groups: Store[PodGroup], algorithm: Algorithm
) -> Status:
    """Success where victims are on their way out; else why not, or what broke.

    `algorithm` is what the group was found unschedulable by, placements included.
    """
    plugins = question.framework.plugins.post_filter
    plugin = next((p for p in plugins if isinstance(p, PodGroupPostFilterPlugin)), None)
    if plugin is None:
        return NOT_REGISTERED
    group = groups.get(question.key.name, question.key.namespace)
    if group is None:
        return failed(
            f'failed to get pod group object: podgroup.scheduling.k8s.io "{question.key.name}" not found'
        )
    constraints = group.spec.scheduling_constraints
    if constraints is not None and constraints.topology:
        return GOES_TO_ONE_PLACE
    pods = [member.pod for member in question.members]
    trials = ground.cache.trials
    try:
        return await plugin.pod_group_post_filter(group, pods, _WithoutVictims(ground, question, algorithm))
    except OverBudgetError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this group's attempt
        return failed(error)
    finally:
        ground.cache.undo_trials(ground.snapshot, trials)


@dataclass(frozen=True, slots=True)
class _WithoutVictims:
    """Implements berth.framework.preempting.GroupTrial."""

    ground: Ground
    question: GroupQuestion
    algorithm: Algorithm

    def take_out(self, pod: PodInfo) -> None:
        """Think a placed pod away."""
        self.ground.cache.try_pod(self.ground.snapshot, -1, pod)

    def put_back(self, pod: PodInfo) -> None:
        """Think it back."""
        self.ground.cache.try_pod(self.ground.snapshot, 1, pod)

    async def fits(self) -> Status:
        """Whether the group would be scheduled now."""
        status = (await self.algorithm(replace(self.question, simulated=True))).status
        if isinstance(status.error, OverBudgetError):
            raise status.error
        return status
