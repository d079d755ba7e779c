"""The claims of a pod, and whether they have a volume or wait for the pod's node to get one."""

from collections.abc import Iterator

import msgspec

from berth.framework.mirrors.listers import Listers
from berth.framework.status import PluginError
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_volumes import ClaimUse, claim_uses
from berth.objects.volumes.storage import LOST, PersistentVolumeClaim
from berth.plugins.pod_volumes import claim_not_found

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class RejectedClaimError(Exception):
    """A claim that no node can serve as it is; the text is upstream's."""


class PodVolumeClaims(msgspec.Struct, frozen=True):
    """Claims with a volume, and claims that get one once the pod has a node."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


def pod_claims(pod: Pod, listers: Listers) -> PodVolumeClaims | None:
    """The pod's claims as they are assumed to be; None where it has none.

    Raises: RejectedClaimError; PluginError where a class does not say when to bind.
    """
    claims = list(_usable_claims(pod, listers))
    if not claims:
        return None
    bound, delayed = [], []
    immediate = False
    for claim in claims:
        if claim.bound:
            bound.append(claim)
        elif _waits(claim, listers) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise RejectedClaimError(UNBOUND)
    return PodVolumeClaims(tuple(bound), tuple(delayed))


def _usable_claims(pod: Pod, listers: Listers) -> Iterator[PersistentVolumeClaim]:
    for use in claim_uses(pod):
        claim = listers.assumed_claims.get(use.name, use.namespace)
        if claim is None:
            raise RejectedClaimError(_absent(use))
        if claim.status.phase == LOST:
            volume = claim.spec.volume_name
            raise RejectedClaimError(
                f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            raise RejectedClaimError(f'persistentvolumeclaim "{use.name}" is being deleted')
        if not use.owned(claim):
            raise RejectedClaimError(use.not_owned)
        yield claim


def _absent(use: ClaimUse) -> str:
    if use.ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
    return claim_not_found(use.name)


def _waits(claim: PersistentVolumeClaim, listers: Listers) -> bool:
    """Whether the claim's class binds it only once a pod uses it."""
    storage_class = listers.storage_classes.get(claim.storage_class)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise PluginError(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"')
    return storage_class.waits
