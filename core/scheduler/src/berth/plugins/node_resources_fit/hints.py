"""What may make room for a pod that did not fit."""

from collections.abc import Mapping
from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.devices.devices import DeviceClass
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import fit_requests, pod_requests
from berth.objects.quantity import milli
from berth.plugins.device_classes import IMPLICIT_PREFIX, DeviceClassNames, is_device_resource
from berth.plugins.node_resources_fit.filtering import fits_when_empty
from berth.plugins.queueing import expected, is_own, maybe, queue_if, unplaced
from berth.snapshot.node_info import NodeInfo

POD_EVENTS = ClusterEvent(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
CLASS_EVENTS = ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
MAX_OFFERS = 2
"""Those of the node before the event and after it."""

NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)


class FitHints:
    """The registrations; `names` says which resources devices stand behind, None where that is off.

    `resizes_count_by_pod` is the rule of the release.
    """

    def __init__(self, names: DeviceClassNames | None, *, resizes_count_by_pod: bool) -> None:
        self._names = names
        self._by_pod = resizes_count_by_pod
        self._offers: dict[int, tuple[Node, NodeInfo]] = {}

    def registrations(self) -> list[ClusterEventWithHint]:
        """The events with their hints."""
        found = [
            ClusterEventWithHint(POD_EVENTS, self.after_pod_change),
            ClusterEventWithHint(NODE_EVENTS, self.after_node_change),
        ]
        if self._names is not None:
            found.append(ClusterEventWithHint(CLASS_EVENTS, after_class_change))
        return found

    def after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where the node could hold the pod and is new, or has more of something the pod needs.

        Resources that the filter ignores count here, as upstream has it.
        """
        before, after = maybe(Node, old), self._offer(expected(Node, new))
        requests = fit_requests(pod)
        delegated = delegated_to_devices(requests, self._names)
        if not fits_when_empty(requests, after, delegated):
            return QueueingHint.SKIP
        if before is None:
            return QueueingHint.QUEUE
        was = self._offer(before)
        if after.allowed_pods > was.allowed_pods:
            return QueueingHint.QUEUE
        offers = after.allocatable
        if any(offers.get(name, 0) <= 0 for name in delegated):
            return QueueingHint.QUEUE
        grew = (offers.get(name, 0) > was.allocatable.get(name, 0) for name, v in requests.items() if v)
        return queue_if(any(grew))

    def after_pod_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where a pod left its node, or shrank in something that the waiting one requests."""
        before, after = expected(Pod, old), maybe(Pod, new)
        if after is None:
            return queue_if(not unplaced(before))
        if is_own(pod, after):
            return QueueingHint.QUEUE
        return queue_if(after.node_name and self._shrank_in(pod, before, after))

    def _shrank_in(self, pod: Pod, before: Pod, after: Pod) -> bool:
        had = pod_requests(before, use_status=True, by_pod=self._by_pod)
        has = pod_requests(after, use_status=True, by_pod=self._by_pod)
        wanted = pod_requests(pod, use_status=True, by_pod=self._by_pod)
        return any(
            amount and milli(had.get(name, 0)) > milli(has.get(name, 0)) for name, amount in wanted.items()
        )

    def _offer(self, node: Node) -> NodeInfo:
        """What a node offers, worked out once for all pods that one event is shown to."""
        known = self._offers.get(id(node))
        if known is not None and known[0] is node:
            return known[1]
        info = NodeInfo(node.name)
        info.set_node(node)
        if len(self._offers) == MAX_OFFERS:
            self._offers.clear()
        self._offers[id(node)] = node, info
        return info


def after_class_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the class now stands behind something that the pod requests, be it zero of it."""
    before, after = maybe(DeviceClass, old), expected(DeviceClass, new)
    resource = after.spec.extended_resource_name
    if before is not None and before.spec.extended_resource_name == resource:
        return QueueingHint.SKIP
    requested = pod_requests(pod)
    if before is None and f"{IMPLICIT_PREFIX}{after.name}" in requested:
        return QueueingHint.QUEUE
    return queue_if(resource and resource in requested)


def delegated_to_devices(requests: Mapping[str, int], names: DeviceClassNames | None) -> frozenset[str]:
    """The requested resources that devices stand behind."""
    if names is None or not names.any:
        return frozenset()
    return frozenset(
        name
        for name, amount in requests.items()
        if amount and is_device_resource(name) and names.behind(name)
    )
