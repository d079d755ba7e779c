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
from berth.framework.mirrors.group_trees import key_of
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed, unresolvable, unschedulable
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_group_lookup import group_object, group_states, in_trial
from berth.plugins.queueing import expected, queue_if
from berth.snapshot.pod_group_states import AnyKey, PodGroupState, group_of

TOO_FEW_KNOWN = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_PLACED = "waiting for minCount pods from a gang to be scheduled"
WAIT_SECONDS = 300.0

POD_ADDED = ClusterEvent(EventResource.POD, ActionType.ADD)
GROUP_ADDED = ClusterEvent(EventResource.POD_GROUP, ActionType.ADD)
GROUP_CHANGED = ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE)
TREE_ADDED = ClusterEvent(EventResource.COMPOSITE_POD_GROUP, ActionType.ADD)
TREE_CHANGED = ClusterEvent(EventResource.COMPOSITE_POD_GROUP, ActionType.UPDATE)


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
        states, trees = group_states(self.handle), self.handle.listers.trees
        root = trees.root(key)
        if isinstance(root, CompositePodGroup) and not trees.is_complete(key_of(root)):
            return unresolvable(f'waiting for composite pod group "{root.name}" tree to meet quorum')
        known = len(states.known(key).pods)
        if root is group and group.min_count is not None and known < group.min_count:
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

    def placement_feasible(self, state: CycleState, group: AnyKey, progress: PlacementProgress) -> Status:
        """Wait until enough pods, or groups right below, are placed: one where the group is no gang."""
        del state
        needed = group_object(self.handle, group).needed
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
            ClusterEventWithHint(POD_ADDED, self.after_pod_added),
            ClusterEventWithHint(GROUP_ADDED, self.after_group_added),
        ]
        if self.handle.rules.queues_groups:
            found.append(ClusterEventWithHint(GROUP_CHANGED, self.after_group_changed))
        if self.handle.listers.trees.follows:
            found.append(ClusterEventWithHint(TREE_ADDED, self.after_group_added))
            found.append(ClusterEventWithHint(TREE_CHANGED, self.after_tree_changed))
        return found

    def after_pod_added(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where the pod belongs to the same group, or to one of the same tree."""
        del old
        added = group_of(expected(Pod, new))
        return queue_if(added is not None and self._together(pod, added))

    def after_group_added(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where it is the pod's group, or one of its tree."""
        del old
        assert isinstance(new, PodGroup | CompositePodGroup), f"a group, not {type(new).__name__}"
        return queue_if(self._together(pod, key_of(new)))

    def after_group_changed(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where it is the pod's group, or one of its tree, a gang that needs fewer pods than before."""
        before, now = expected(PodGroup, old), expected(PodGroup, new)
        lowered = (now.min_count or 0) < (before.min_count or 0) and now.min_count is not None
        return queue_if(lowered and self._together(pod, key_of(now)))

    def after_tree_changed(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where it is a group of the pod's tree that needs fewer groups than before."""
        before, now = expected(CompositePodGroup, old), expected(CompositePodGroup, new)
        return queue_if(now.needed < before.needed and self._together(pod, key_of(now)))

    def _together(self, pod: Pod, other: AnyKey) -> bool:
        """Whether the pod is of that group, or both are of one tree."""
        own, trees = group_of(pod), self.handle.listers.trees
        if own is None or not trees.follows:
            return own == other
        root = trees.root_key(own)
        return own == other or (root is not None and root == trees.root_key(other))
