"""Writes to resource claims, as the adapters provide them.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go PostFilter, Unreserve, bindClaim
(Kubernetes v1.36).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from berth.objects.devices.resource_claims import Allocation, Consumer, ResourceClaim
from berth.objects.pods.pod import Pod


class ClaimWriteError(Exception):
    """The claim is not what it was taken for: gone, or allocated by another writer meanwhile."""


class ClaimWriter(Protocol):
    """Each method tries again where the claim was written at the same time.

    Raises (all): ClaimWriteError, and whatever the API client raises.
    """

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Create a claim under a name that the API server completes; the claim as stored."""

    async def reserve(
        self, claim: ResourceClaim, consumer: Consumer, allocation: Allocation | None
    ) -> ResourceClaim:
        """Reserve the claim for a pod or a group, with its allocation if it has none yet; it as stored.

        A claim that gets an allocation is protected from deletion first.
        """

    async def unreserve(self, claim: ResourceClaim, consumer: Consumer) -> ResourceClaim:
        """Reserve the claim for that pod or group no more; the claim as stored."""

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take allocation, consumers and device statuses out of this version of the claim; it as stored."""

    async def delete(self, claim: ResourceClaim) -> None:
        """Lift the protection from deletion and delete the claim; one that is gone is no matter."""

    async def publish(self, pod: Pod, claim_name: str, mappings: Sequence[Mapping[str, Any]]) -> None:
        """Tell in the pod's status which claim serves its extended resources, and how."""
