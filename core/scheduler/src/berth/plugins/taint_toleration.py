"""TaintToleration: keep pods off nodes whose taints they do not tolerate.

Source: pkg/scheduler/framework/plugins/tainttoleration (Kubernetes v1.36).
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
from berth.framework.interface import (
    Depends,
    EnqueueExtensions,
    FilterPlugin,
    NormalizedBy,
    NormalizeScorePlugin,
    PreScorePlugin,
    Reason,
    ReasonCodes,
    Scores,
)
from berth.framework.score import default_normalize
from berth.framework.status import SUCCESS, Code, Status
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.taint import TaintEffect
from berth.plugins.in_tree import InTreePlugin, first_reason
from berth.plugins.queueing import expected, maybe, of_own_pod, queue_if
from berth.plugins.tolerance import Tolerance
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
TOLERATION_ADDED = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)


class TaintToleration(InTreePlugin, FilterPlugin, PreScorePlugin, NormalizeScorePlugin, EnqueueExtensions):
    """Turn down nodes with untolerated hard taints; prefer nodes with fewer soft ones."""

    depends = Depends.OBJECT
    # Evicting pods never removes a taint, so preemption need not try.
    reasons = (Reason("node(s) had untolerated taint(s)", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._tolerance = Tolerance(handle)

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 where a hard taint is untolerated."""
        del state
        return first_reason(self._tolerance.kept_away(pod.spec.tolerations, nodes))

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Always score: a cluster without taints gives every node the best score."""
        del state, pod, nodes, feasible
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """Count untolerated soft taints per node; fewer is better."""
        del state
        soft = tuple(t for t in pod.spec.tolerations if t.effect in ("", TaintEffect.PREFER_NO_SCHEDULE))
        return self._tolerance.soft_count(soft, nodes)

    def normalized_by(self, state: CycleState) -> NormalizedBy:
        """The lowest and the highest score."""
        del state
        return NormalizedBy.EXTREMES

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Turn counts into 0 to 100, most taints lowest."""
        del state, pod
        return default_normalize(scores, reverse=True)

    def sign_pod(self, pod: Pod) -> Hashable:
        """The tolerations."""
        return pod.spec.tolerations

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes that come or change taints, and the pod's own tolerations."""
        return [
            ClusterEventWithHint(NODE_EVENTS, self._after_node_change),
            ClusterEventWithHint(TOLERATION_ADDED, of_own_pod),
        ]

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        before, node, tolerations = maybe(Node, old), expected(Node, new), pod.spec.tolerations
        was_away = before is None or self._tolerance.has_untolerated(tolerations, before)
        return queue_if(was_away and not self._tolerance.has_untolerated(tolerations, node))
