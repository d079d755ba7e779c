"""What may help a pod that waits for devices.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go EventsToRegister (Kubernetes
v1.36).
"""

from functools import partial
from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    ConcernedPods,
    EventResource,
    QueueingHint,
)
from berth.objects.devices.devices import DeviceClass
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import pod_requests
from berth.objects.pods.pod_template import PodTemplate
from berth.plugins.dynamic_resources.claims import PodClaims, UnresolvedClaimError
from berth.plugins.queueing import NarrowHint, expected, is_own, maybe, queue_if

ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE
POD_GONE = ClusterEvent(EventResource.POD, ActionType.DELETE)
CLAIM_DELETED = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.DELETE)
CLASS_DELETED = ClusterEvent(EventResource.DEVICE_CLASS, ActionType.DELETE)
SLICE_DELETED = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.DELETE)
NODES = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE


class DeviceHints:
    """The registrations; hints look claims up as they are when they are asked."""

    def __init__(self, claims: PodClaims) -> None:
        self._claims = claims

    def registrations(self) -> list[ClusterEventWithHint]:
        """The events with their hints.

        Claims that are not there yet gate a pod: what nodes and drivers offer does not matter to it.
        """
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return [
            _of_supply(ClusterEvent(EventResource.NODE, NODES)),
            ClusterEventWithHint(
                ClusterEvent(EventResource.RESOURCE_CLAIM, ADD_OR_UPDATE),
                NarrowHint(self.after_claim_change, concerned_by_change),
            ),
            ClusterEventWithHint(CLAIM_DELETED, NarrowHint(after_claim_deletion, concerned_by_deletion)),
            _of_supply(POD_GONE, NarrowHint(after_pod_gone, concerned_by_pod)),
            ClusterEventWithHint(ClusterEvent(EventResource.POD, generated), self.after_claims_generated),
            _of_supply(ClusterEvent(EventResource.DEVICE_CLASS, ADD_OR_UPDATE)),
            _of_supply(CLASS_DELETED, after_class_deletion),
            _of_supply(ClusterEvent(EventResource.RESOURCE_SLICE, ADD_OR_UPDATE)),
            _of_supply(SLICE_DELETED),
        ]

    def after_claim_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where any claim gave devices back, or one of the pod's own is another, or has another status.

        A claim that was made anew may come as a change of the one before (kubernetes/kubernetes#140831).
        """
        before, after = maybe(ResourceClaim, old), expected(ResourceClaim, new)
        try:
            own = self._claims.of(pod)
        except UnresolvedClaimError:
            return QueueingHint.SKIP
        if _gave_back(before, after):
            return QueueingHint.QUEUE
        if all(claim.uid != after.uid for claim in own):
            return QueueingHint.SKIP
        return queue_if(before is None or (before.uid, before.status) != (after.uid, after.status))

    def after_claims_generated(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where it is the waiting pod, and all of its claims are there now."""
        del old
        after = expected(Pod, new)
        return queue_if(is_own(pod, after) and self._claims.resolvable(after))


_of_supply = partial(ClusterEventWithHint, opens_gate=False)


def concerned_by_change(old: Any, new: Any) -> ConcernedPods | None:
    """The pod that the claim was made for, and pods that name it.

    All pods where the claim gave devices back, and where it is a group's.
    """
    before, after = maybe(ResourceClaim, old), expected(ResourceClaim, new)
    owner = next((each for each in after.metadata.owner_references if each.controller), None)
    if _gave_back(before, after) or (owner is not None and owner.kind == "PodGroup"):
        return None
    key = "" if owner is None else f"{after.namespace}/{owner.name}"
    return ConcernedPods(key, partial(_names_any, after.namespace, frozenset({after.name})))


def concerned_by_deletion(old: Any, new: Any) -> ConcernedPods | None:
    """All pods, or none where the claim had no devices."""
    del new
    return None if expected(ResourceClaim, old).allocation is not None else NO_PODS


def concerned_by_pod(old: Any, new: Any) -> ConcernedPods:
    """Pods that name one of the pod's claims."""
    del new
    gone = expected(Pod, old)
    names = gone.template.derived(_named)
    return ConcernedPods("", partial(_names_any, gone.namespace, names)) if names else NO_PODS


def _gave_back(before: ResourceClaim | None, after: ResourceClaim) -> bool:
    """Whether devices are free that the claim had before."""
    allocated = None if before is None else before.allocation
    return allocated is not None and allocated != after.allocation


def _names_any(namespace: str, names: frozenset[str | None], template: PodTemplate) -> bool:
    """Whether pods of the template name one of these claims, which are not made for them."""
    return template.namespace == namespace and not names.isdisjoint(template.derived(_named))


NO_PODS = ConcernedPods("", lambda _: False)


def after_claim_deletion(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the claim that is gone had devices: they are free now.

    Upstream v1.36 hears of no deletion (kubernetes/kubernetes#140831).
    """
    del pod, new
    return queue_if(expected(ResourceClaim, old).allocation is not None)


def after_class_deletion(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where another class may stand behind the pod's extended resource now; upstream hears of none."""
    del new
    return queue_if(expected(DeviceClass, old).spec.extended_resource_name in pod_requests(pod))


def after_pod_gone(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where a pod that shares a claim with the waiting one is gone, or gave its node up.

    Its allocation may have been in flight, and is written by no one then: the claim has no event
    (kubernetes/kubernetes#140269).
    """
    del new
    gone = expected(Pod, old)
    return queue_if(_names_any(gone.namespace, gone.template.derived(_named), pod.template))


def _named(template: PodTemplate) -> frozenset[str | None]:
    return frozenset(entry.resource_claim_name for entry in template.spec.resource_claims) - {None}
