"""The claims of a pod: found by name or by what was made from a template for it.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go PreEnqueue,
foreachPodResourceClaim (Kubernetes v1.36).
"""

from collections.abc import Iterator

from berth.framework.claim_tracker import ClaimTracker
from berth.objects.pod import Pod
from berth.objects.pod_spec import PodResourceClaim
from berth.objects.resource_claims import ResourceClaim


class UnresolvedClaimError(Exception):
    """A claim of the pod that is not there, or not for it; the text is upstream's."""


def claims_of(pod: Pod, claims: ClaimTracker) -> list[ResourceClaim]:
    """The pod's claims, in the order of its spec; entries that need none are left out.

    Raises: UnresolvedClaimError.
    """
    return list(_claims(pod, claims))


def resolvable(pod: Pod, claims: ClaimTracker) -> bool:
    """Whether all of the pod's claims are there."""
    try:
        claims_of(pod, claims)
    except UnresolvedClaimError:
        return False
    return True


def _claims(pod: Pod, claims: ClaimTracker) -> Iterator[ResourceClaim]:
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is not None:
            yield _found(pod, claims, name, must_own=entry.resource_claim_name is None)


def claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The claim that the pod names or that was made for it from a template; None where it needs none.

    Raises: UnresolvedClaimError.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    where = f'pod "{pod.key}"'
    if entry.resource_claim_template_name is None:
        raise UnresolvedClaimError(
            f'{where}, spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.get("name") == entry.name:
            name = status.get("resourceClaimName")
            return None if name is None else str(name)
    raise UnresolvedClaimError(f"{where}: ResourceClaim not created yet")


def _found(pod: Pod, claims: ClaimTracker, name: str, *, must_own: bool) -> ResourceClaim:
    claim = claims.get(name, pod.namespace)
    if claim is None:
        raise UnresolvedClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise UnresolvedClaimError(f'resourceclaim "{name}" is being deleted')
    if must_own and not _owned(claim, pod):
        raise UnresolvedClaimError(
            f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
        )
    return claim


def _owned(claim: ResourceClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references)
