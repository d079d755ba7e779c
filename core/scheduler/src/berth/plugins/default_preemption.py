"""DefaultPreemption: evict pods of lower priority where that lets a pod run.

Which pods, and how, is for the scheduler's preemption to say; this plugin asks for it through its handle.

Source: pkg/scheduler/framework/plugins/defaultpreemption (Kubernetes v1.36).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from berth.config.plugin_args import DefaultPreemptionArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.handle import Handle
from berth.framework.interface import (
    EnqueueExtensions,
    GroupTrial,
    PodGroupPostFilterPlugin,
    PodGroupPostFilterResult,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
)
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.preempting import GroupPreemptionRequest, Preemption, PreemptionRequest
from berth.framework.status import SUCCESS, Status, unresolvable, unschedulable
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin
from berth.snapshot.pod_group_states import group_of

POD_GONE = ClusterEvent(EventResource.POD, ActionType.DELETE)

STILL_EVICTING = "waiting for the preemption for this pod to be finished"
STILL_EVICTING_FOR_GROUP = "waiting for the preemption for this pod group to be finished"

NO_SUCH_GROUP = "pod group for pod not found"
GROUP_GOES_TO_ONE_PLACE = "not eligible due to placement-based pod group scheduling limitation"
GROUPS_PREEMPT_TOGETHER = "not eligible due to workload aware preemption enabled"


class DefaultPreemption(
    InTreePlugin, PreEnqueuePlugin, PostFilterPlugin, PodGroupPostFilterPlugin, EnqueueExtensions
):
    """Make room for a pod that fits nowhere, and keep it out of the queue while that goes on."""

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._percentage = args.min_candidate_nodes_percentage
        self._absolute = args.min_candidate_nodes_absolute
        self._asynchronous = handle.feature_enabled("SchedulerAsyncPreemption")
        self._groups_preempt_together = handle.feature_enabled("WorkloadAwarePreemption")
        self._groups_go_to_one_place = handle.feature_enabled("TopologyAwareWorkloadScheduling")

    @property
    def preemption(self) -> Preemption:
        """What the scheduler has for making room."""
        preemption = self.handle.preemption
        assert preemption is not None, "a handle made for this plugin has a Preemption"
        return preemption

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold a pod back while victims are being evicted for it."""
        if not self._asynchronous:
            return SUCCESS
        if self._groups_preempt_together and pod.spec.scheduling_group is not None:
            group = self._group(pod)
            waits = group is not None and self.preemption.running(group.uid)
            return unresolvable(STILL_EVICTING_FOR_GROUP) if waits else SUCCESS
        return unresolvable(STILL_EVICTING) if self.preemption.running(pod.uid) else SUCCESS

    async def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> PostFilterResult:
        """Nominate a node and have its victims evicted, or say why not."""
        self.preemption.attempted()
        reason = self._why_not_alone(pod)
        if reason:
            return signed(PostFilterResult(unschedulable(reason)))
        request = PreemptionRequest(self.name, pod, state, diagnosis, self._percentage, self._absolute)
        return signed(await self.preemption.preempt(request))

    async def pod_group_post_filter(
        self, state: CycleState, group: AnyGroup, pods: Sequence[Pod], trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        """Have victims evicted so that the whole group fits, or say why not."""
        del state
        request = GroupPreemptionRequest(self.name, group, pods, trial)
        result = await self.preemption.preempt_for_group(request)
        if not self.handle.rules.groups_keep_the_nodes_found or not result.status.message:
            return result
        text = f"pod group preemption: {result.status.message}"
        return msgspec.structs.replace(result, status=Status(result.status.code, (text,)))

    def _why_not_alone(self, pod: Pod) -> str:
        """What keeps a pod of a group from preempting on its own account; empty if nothing does."""
        if pod.spec.scheduling_group is None:
            return ""
        if self._groups_go_to_one_place:
            group = self._group(pod)
            if group is None:
                return NO_SUCH_GROUP
            if group.spec.scheduling_constraints is not None:
                return GROUP_GOES_TO_ONE_PLACE
        return GROUPS_PREEMPT_TOGETHER if self._groups_preempt_together else ""

    def _group(self, pod: Pod) -> AnyGroup | None:
        """The pod's group, the root of its tree."""
        key = group_of(pod)
        return None if key is None else self.handle.listers.trees.root(key)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that go, so that the gate is looked at again; whether the pod is worth it others say."""
        return [ClusterEventWithHint(POD_GONE, never_by_itself)] if self._asynchronous else []


def never_by_itself(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """SKIP: the plugins that turned the pod down decide."""
    del pod, old, new
    return QueueingHint.SKIP


def signed(result: PostFilterResult) -> PostFilterResult:
    """The result with its message reported as preemption's; one without a message as it is."""
    message = result.status.message
    if not message:
        return result
    return msgspec.structs.replace(result, status=Status(result.status.code, (f"preemption: {message}",)))
