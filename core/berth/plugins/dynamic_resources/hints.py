"""What may help a pod that waits for devices.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go EventsToRegister (Kubernetes
v1.36).
"""

from typing import Any

from berth.framework.claim_tracker import ClaimTracker
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.pod import Pod
from berth.objects.resource_claims import ResourceClaim
from berth.plugins.dynamic_resources.claims import UnresolvedClaimError, claims_of, resolvable
from berth.plugins.queueing import expected, is_own, maybe, queue_if

ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE
NODES = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE


class Hints:
    """The registrations; hints look claims up as they are when they are asked."""

    def __init__(self, claims: ClaimTracker) -> None:
        self._claims = claims

    def registrations(self) -> list[ClusterEventWithHint]:
        """The events with their hints."""
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, NODES)),
            ClusterEventWithHint(
                ClusterEvent(EventResource.RESOURCE_CLAIM, ADD_OR_UPDATE), self.after_claim_change
            ),
            ClusterEventWithHint(ClusterEvent(EventResource.POD, generated), self.after_claims_generated),
            ClusterEventWithHint(ClusterEvent(EventResource.DEVICE_CLASS, ADD_OR_UPDATE)),
            ClusterEventWithHint(ClusterEvent(EventResource.RESOURCE_SLICE, ADD_OR_UPDATE)),
        ]

    def after_claim_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where any claim gave its devices back, or one of the pod's own has another status."""
        before, after = maybe(ResourceClaim, old), expected(ResourceClaim, new)
        try:
            own = claims_of(pod, self._claims)
        except UnresolvedClaimError:
            return QueueingHint.SKIP
        if before is not None and before.allocation is not None and after.allocation is None:
            return QueueingHint.QUEUE
        if all(claim.uid != after.uid for claim in own):
            return QueueingHint.SKIP
        return queue_if(before is None or before.status != after.status)

    def after_claims_generated(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where it is the waiting pod, and all of its claims are there now."""
        del old
        after = expected(Pod, new)
        return queue_if(is_own(pod, after) and resolvable(after, self._claims))
