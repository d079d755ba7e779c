"""What changed between two versions of a pod or of a node, as the events that plugins register for.

Source: pkg/scheduler/framework/events.go PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange
(Kubernetes v1.36).
"""

from collections.abc import Iterator, Mapping

import msgspec

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.objects.node import Amount, Node
from berth.objects.pods.pod import POD_SCHEDULED, Pod
from berth.objects.pods.pod_requests import pod_requests
from berth.objects.quantity import milli, nanos

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)


class UnassignedPodEvents:
    """The events of pods without a node, as the release calls them (berth.config.releases)."""

    def __init__(self, *, split: bool) -> None:
        whole = EventResource.UNSCHEDULABLE_POD
        resource = EventResource.UNSCHEDULED_POD if split else whole
        self.own = EventResource.TARGET_POD if split else whole
        """What events are about that change the waiting pod itself."""
        self.add = ClusterEvent(resource, ActionType.ADD)
        self.update = ClusterEvent(resource, ActionType.UPDATE)
        self.delete = ClusterEvent(resource, ActionType.DELETE)
        self.arrivals = frozenset({self.add.label, self.update.label})
        """The labels under which pods come to the queue."""
        self.unknown_updated = self.add if split else self.update
        """What it is to the queue if a pod is updated that it does not have."""


UNSPLIT = UnassignedPodEvents(split=False)
"""Up to Kubernetes 1.36."""


def pod_events(
    old: Pod,
    new: Pod,
    *,
    resizes_count_by_pod: bool = False,
    unassigned: EventResource = EventResource.UNSCHEDULABLE_POD,
) -> list[ClusterEvent]:
    """At least one event: what changed if that has a name of its own, a general update otherwise.

    `resizes_count_by_pod` is the rule of the release (berth.config.releases), which matters on nodes only;
    `unassigned` is what the events of a pod without a node are about.
    """
    resource = EventResource.ASSIGNED_POD if new.node_name else unassigned
    found = [ClusterEvent(resource, action) for action in _pod_actions(old, new, by_pod=resizes_count_by_pod)]
    return found or [ClusterEvent(resource, ActionType.UPDATE)]


def only_says_why(old: Pod, new: Pod) -> bool:
    """Whether the pod's condition PodScheduled alone has changed, in which a scheduler says why it waits."""
    return old.template is new.template and _without_its_reason(old) == _without_its_reason(new)


def _without_its_reason(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version="")
    conditions = tuple(each for each in pod.status.conditions if each.type != POD_SCHEDULED)
    status = msgspec.structs.replace(pod.status, conditions=conditions)
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


def _pod_actions(old: Pod, new: Pod, *, by_pod: bool) -> Iterator[ActionType]:
    # Pods of one template, such as versions that differ in their status, need not be compared label by label.
    if old.template is not new.template and old.labels != new.labels:
        yield ActionType.UPDATE_POD_LABEL
    if _scaled_down(old, new, by_pod=by_pod):
        yield ActionType.UPDATE_POD_SCALE_DOWN
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        yield ActionType.UPDATE_POD_TOLERATION
    if _claims(old) != _claims(new):
        yield ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM


def _claims(pod: Pod) -> tuple[object, object]:
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def _scaled_down(old: Pod, new: Pod, *, by_pod: bool) -> bool:
    if _written_sizes(old) == _written_sizes(new) and _granted_sizes(old) == _granted_sizes(new):
        return False
    before = pod_requests(old, use_status=True, by_pod=by_pod)
    after = pod_requests(new, use_status=True, by_pod=by_pod)
    return any(name not in after or milli(after[name]) < milli(before[name]) for name in before)


def _written_sizes(pod: Pod) -> tuple[object, ...]:
    """All that the spec says of requests; comparing it is much cheaper than adding them up."""
    spec = pod.spec
    return spec.containers, spec.init_containers, spec.overhead, spec.resources


def _granted_sizes(pod: Pod) -> tuple[object, ...]:
    """All that the status says of them, which is nothing before the first resize."""
    status = pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    return (
        [c for c in containers if c.resources is not None or c.allocated_resources is not None],
        status.resources,
        status.allocated_resources,
        [c.reason for c in status.conditions if c.type == "PodResizePending"],
    )


def node_events(old: Node, new: Node, *, declared_features: bool = True) -> list[ClusterEvent]:
    """An event for each change that pods may wait for; none for a heartbeat."""
    return [
        ClusterEvent(EventResource.NODE, action)
        for action in _node_actions(old, new, declared_features=declared_features)
    ]


def _node_actions(old: Node, new: Node, *, declared_features: bool) -> Iterator[ActionType]:
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield ActionType.UPDATE_NODE_TAINT
    if not _same_amounts(old.status.allocatable, new.status.allocatable):
        yield ActionType.UPDATE_NODE_ALLOCATABLE
    if old.labels != new.labels:
        yield ActionType.UPDATE_NODE_LABEL
    if old.spec.taints != new.spec.taints:
        yield ActionType.UPDATE_NODE_TAINT
    if _conditions(old) != _conditions(new):
        yield ActionType.UPDATE_NODE_CONDITION
    if old.metadata.annotations != new.metadata.annotations:
        yield ActionType.UPDATE_NODE_ANNOTATION
    if declared_features and old.status.declared_features != new.status.declared_features:
        yield ActionType.UPDATE_NODE_DECLARED_FEATURE


def _same_amounts(old: Mapping[str, Amount], new: Mapping[str, Amount]) -> bool:
    """Whether both say the same, however they write it: `1` and `1000m` are one amount."""
    if old == new:
        return True
    return old.keys() == new.keys() and all(nanos(old[name]) == nanos(new[name]) for name in old)


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
