"""What may help a pod that hard constraints kept from being scheduled."""

from collections.abc import Callable, Sequence
from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.plugins.pod_topology_spread.constraints import SpreadConstraint, topology_keys
from berth.plugins.queueing import is_own, maybe, queue_if, unplaced

POD_EVENTS = ClusterEvent(
    EventResource.POD,
    ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION,
)
NODE_EVENTS = ClusterEvent(
    EventResource.NODE,
    ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT,
)

HardConstraints = Callable[[Pod], Sequence[SpreadConstraint]]


class SpreadHints:
    """The hints, given how to find a waiting pod's hard constraints."""

    def __init__(self, constraints_of: HardConstraints) -> None:
        self._constraints_of = constraints_of

    def registrations(self) -> list[ClusterEventWithHint]:
        """The events with their hints."""
        return [
            ClusterEventWithHint(POD_EVENTS, self.after_pod_change),
            ClusterEventWithHint(NODE_EVENTS, self.after_node_change),
        ]

    def after_pod_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where some constraint counts another number of pods than before."""
        before, after = maybe(Pod, old), maybe(Pod, new)
        there = [other for other in (after, before) if other is not None]
        if not all(_involved(pod, other) for other in there):
            return QueueingHint.SKIP
        constraints = self._constraints_of(pod)
        if before is None or after is None:
            return queue_if(any(c.selector.matches(there[0].labels) for c in constraints))
        tolerates_anew = is_own(pod, after) and before.spec.tolerations != after.spec.tolerations
        if tolerates_anew and any(c.honors_taints for c in constraints):
            return QueueingHint.QUEUE
        return queue_if(
            any(c.selector.matches(before.labels) != c.selector.matches(after.labels) for c in constraints)
        )

    def after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where a node with all keys comes, goes, or changes domain or taints."""
        before, after = maybe(Node, old), maybe(Node, new)
        keys = topology_keys(self._constraints_of(pod))
        if before is None or after is None:
            node = after or before
            return queue_if(node is not None and _labelled(node, keys))
        if _labelled(before, keys) != _labelled(after, keys):
            return QueueingHint.QUEUE
        moved = any(before.labels.get(key) != after.labels.get(key) for key in keys)
        return queue_if(_labelled(after, keys) and (moved or before.spec.taints != after.spec.taints))


def _involved(pod: Pod, other: Pod) -> bool:
    return is_own(pod, other) or (not unplaced(other) and other.namespace == pod.namespace)


def _labelled(node: Node, keys: frozenset[str]) -> bool:
    return keys <= node.labels.keys()
