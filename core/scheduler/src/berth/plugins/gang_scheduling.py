"""GangScheduling: bind the pods of a gang once enough of them have a node.

Up to Kubernetes 1.36 each pod waits at Permit for the others; from 1.37 on, where a group is tried as one,
the cycle asks after each pod whether enough of them are placed, and Permit is no point of this plugin.

Source: pkg/scheduler/framework/plugins/gangscheduling (Kubernetes v1.36, v1.37).
"""

from typing import Any

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.interface import (
    EnqueueExtensions,
    PermitPlugin,
    PermitResult,
    PlacementFeasiblePlugin,
    PlacementProgress,
    PreEnqueuePlugin,
)
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed, unresolvable, unschedulable
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_group_lookup import group_object, group_states, in_trial
from berth.plugins.queueing import expected, queue_if
from berth.snapshot.pod_group_states import GroupKey, PodGroupState, group_of

TOO_FEW_KNOWN = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_PLACED = "waiting for minCount pods from a gang to be scheduled"
WAIT_SECONDS = 300.0

POD_ADDED = ClusterEvent(EventResource.POD, ActionType.ADD)
GROUP_ADDED = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD)
GROUP_CHANGED = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE)


class GangScheduling(
    InTreePlugin, PreEnqueuePlugin, PermitPlugin, PlacementFeasiblePlugin, EnqueueExtensions
):
    """Hold pods of a gang back until minCount of them are known, and again until that many have a node."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """Wait for the group, and for enough of its pods."""
        key = group_of(pod)
        if key is None:
            return SUCCESS
        group = self.handle.listers.pod_groups.get(key.name, key.namespace)
        if group is None:
            text = f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            return unresolvable(text)
        known = len(group_states(self.handle).known(key).pods)
        if group.min_count is not None and known < group.min_count:
            return unresolvable(TOO_FEW_KNOWN)
        return SUCCESS

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        """Wait until enough pods of the gang have a node; the one that makes it enough lets all go.

        In the trial of a group cycle it lets no pod go, and activates none: all that are ready are tried.
        """
        del node_name
        key = group_of(pod)
        if key is None:
            return PermitResult()
        try:
            needed = group_object(self.handle, key).min_count
            if needed is None:
                return PermitResult()
            group = group_states(self.handle, state).get(key)
        except PluginError as error:
            return PermitResult(failed(error))
        except KeyError as error:
            return PermitResult(failed(str(error.args[0])))
        if group.scheduled_count < needed:
            if not in_trial(state):
                self.handle.activate(group.unscheduled)
            return PermitResult(Status(Code.WAIT, (TOO_FEW_PLACED,)), WAIT_SECONDS)
        if not in_trial(state):
            self._allow(group)
        return PermitResult()

    def placement_feasible(self, state: CycleState, group: GroupKey, progress: PlacementProgress) -> Status:
        """Wait until enough pods have a node, one in a group that is no gang, as long as that can be."""
        del state
        needed = group_object(self.handle, group).min_count or 1
        if progress.scheduled >= needed:
            return SUCCESS
        counts = f"{progress.scheduled} scheduled, {progress.remaining} remaining"
        if progress.scheduled + progress.remaining < needed:
            return unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
        return Status(Code.WAIT, (f"minCount ({needed}) is not yet satisfied: {counts}",))

    def _allow(self, group: PodGroupState) -> None:
        for uid in group.assumed:
            waiting = self.handle.waiting_pods.get(uid)
            if waiting is not None:
                waiting.allow(self.name)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Another pod of the group, the group itself, and where that can change, a lower minCount."""
        found = [
            ClusterEventWithHint(POD_ADDED, after_pod_added),
            ClusterEventWithHint(GROUP_ADDED, after_group_added),
        ]
        if self.handle.rules.queues_groups:
            found.append(ClusterEventWithHint(GROUP_CHANGED, after_group_changed))
        return found


def after_pod_added(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the pod belongs to the same group."""
    del old
    added = group_of(expected(Pod, new))
    return queue_if(added is not None and added == group_of(pod))


def after_group_added(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where it is the pod's group."""
    del old
    group = expected(PodGroup, new)
    return queue_if(group_of(pod) == GroupKey(group.namespace, group.name))


def after_group_changed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where it is the pod's group, a gang that needs fewer pods than before."""
    before, now = expected(PodGroup, old), expected(PodGroup, new)
    lowered = (now.min_count or 0) < (before.min_count or 0) and now.min_count is not None
    return queue_if(lowered and group_of(pod) == GroupKey(now.namespace, now.name))
