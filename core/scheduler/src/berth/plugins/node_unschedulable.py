"""NodeUnschedulable: keep pods off cordoned nodes unless they tolerate it.

Source: pkg/scheduler/framework/plugins/nodeunschedulable (Kubernetes v1.36).
"""

from collections.abc import Hashable
from typing import Any

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.handle import Handle
from berth.framework.interface import Depends, EnqueueExtensions, FilterPlugin, Reason, ReasonCodes
from berth.framework.status import Code
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.taint import Taint, TaintEffect
from berth.plugins.in_tree import InTreePlugin, all_pass, first_reason
from berth.plugins.queueing import expected, is_own, maybe, queue_if
from berth.plugins.tolerance import Tolerance
from berth.snapshot.snapshot import Snapshot

CORDONED = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)
NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
TOLERATION_ADDED = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)


class NodeUnschedulable(InTreePlugin, FilterPlugin, EnqueueExtensions):
    """Turn down nodes whose spec says unschedulable, whatever taints they have."""

    depends = Depends.OBJECT
    reasons = (Reason("node(s) were unschedulable", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._tolerance = Tolerance(handle)

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 where the node is cordoned and the pod does not tolerate that."""
        del state
        if self._tolerance.tolerated(pod.spec.tolerations, CORDONED):
            return all_pass(len(nodes))
        return first_reason(nodes.unschedulable)

    def sign_pod(self, pod: Pod) -> Hashable:
        """The tolerations."""
        return pod.spec.tolerations

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes that come or are uncordoned, and the pod's own tolerations."""
        return [
            ClusterEventWithHint(NODE_EVENTS, self._after_node_change),
            ClusterEventWithHint(TOLERATION_ADDED, self._after_toleration_change),
        ]

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        del pod
        before, node = maybe(Node, old), expected(Node, new)
        was_closed = before is None or before.spec.unschedulable
        return queue_if(was_closed and not node.spec.unschedulable)

    def _after_toleration_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        del old
        changed = expected(Pod, new)
        return queue_if(
            is_own(pod, changed) and self._tolerance.tolerated(changed.spec.tolerations, CORDONED)
        )
