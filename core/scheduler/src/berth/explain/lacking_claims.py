"""What is wrong with the claims of a pod that waits, by the names of claims and classes.

kube-scheduler's messages say that some claim is not bound, and neither which nor why.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from berth.framework.mirrors.listers import Listers
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.objects.pods.pod_volumes import ClaimUse, claim_uses
from berth.objects.volumes.csi_migration import CsiVolume
from berth.objects.volumes.storage import PersistentVolumeClaim
from berth.plugins.dynamic_resources.claims import UnresolvedClaimError, claim_name, generated_claims
from berth.plugins.node_volume_limits.resolving import Counted, Resolver
from berth.plugins.volume_binding.provisioning import NO_PROVISIONER

OF_CLAIMS: Final = frozenset(
    {"VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits", "DynamicResources"}
)
"""The plugins that turn a pod down for its claims."""
SEE_DRIVERS: Final = "kubectl get csidrivers,csinodes"
MAX_CLAIMS: Final = 20
MAX_NAMES: Final = 8


class Lacking(NamedTuple):
    """What is said of one claim, "" where kube-scheduler's message says it, and what its owner can do."""

    cause: str
    remedy: str


def lacking(pod: Pod, listers: Listers) -> list[Lacking]:
    """Give what the pod's claims lack, in the order of its spec.

    Of volumes and of devices MAX_CLAIMS are looked at. Cost: O(claims + classes).
    """
    volumes = (_of_volume(use, listers) for use in islice(claim_uses(pod), MAX_CLAIMS))
    devices = (_of_devices(pod, entry, listers) for entry in pod.spec.resource_claims[:MAX_CLAIMS])
    return [found for each in (*volumes, *devices) for found in each]


def _of_volume(use: ClaimUse, listers: Listers) -> Iterator[Lacking]:
    claim, named = (
        listers.persistent_volume_claims.get(use.name, use.namespace),
        f"PersistentVolumeClaim {use.name}",
    )
    if claim is None:
        made = (
            "its controller makes it: kubectl get events" if use.ephemeral else "create it: kubectl get pvc"
        )
        yield Lacking("", f"{made} -n {use.namespace}")
    elif claim.metadata.deletion_timestamp is not None:
        yield Lacking(f"{named} is being deleted", "use another claim, or make it again once it is gone")
    elif not claim.spec.volume_name:
        yield from _unbound(claim, named, listers)
    else:
        yield from _with_volume(claim, named, listers)
    if claim is not None:
        yield from _driver(Resolver(listers).counted(use), named, listers)


def _with_volume(claim: PersistentVolumeClaim, named: str, listers: Listers) -> Iterator[Lacking]:
    name, described = claim.spec.volume_name, f"kubectl describe pvc {claim.name} -n {claim.namespace}"
    volume = listers.persistent_volumes.get(name)
    if volume is None:
        yield Lacking(
            f"PersistentVolume {name} of {named} does not exist",
            f"restore the volume, or make the claim again: {described}",
        )
    elif not claim.bound:
        of = volume.spec.claim_ref
        taken = of is not None and (of.namespace, of.name) != (claim.namespace, claim.name)
        whose = f", which is of claim {of.namespace}/{of.name}" if of is not None and taken else ""
        yield Lacking(
            f"{named} is not bound to its PersistentVolume {name} yet{whose}",
            f"the claim's events say why: {described}",
        )


def _driver(counted: Counted, named: str, listers: Listers) -> Iterator[Lacking]:
    """What is said of a driver that no node has."""
    if not isinstance(counted, CsiVolume) or counted.driver in NO_PROVISIONER:
        return
    driver = counted.driver
    if any(each.name == driver for node in listers.csi_nodes for each in node.spec.drivers):
        return
    unknown = "" if listers.csi_drivers.get(driver) is not None else f", and there is no CSIDriver {driver}"
    if not counted.claim:
        cause = f"no node's CSINode has the driver {driver} of {named}{unknown}"
        yield Lacking(cause, f"install the driver, or start it on the nodes: {SEE_DRIVERS}")
    else:
        cause = f"the volume of {named} is to be made by {driver}, which no node's CSINode has{unknown}"
        yield Lacking(cause, f"see whether {driver} runs, and where it is a CSI driver: {SEE_DRIVERS}")


def _unbound(claim: PersistentVolumeClaim, named: str, listers: Listers) -> Iterator[Lacking]:
    described = f"kubectl describe pvc {claim.name} -n {claim.namespace}"
    if not claim.storage_class:
        yield Lacking(
            f"{named} has neither a volume nor a StorageClass",
            f"make a volume for it, or name a class: {described}",
        )
        return
    storage_class = listers.storage_classes.get(claim.storage_class)
    if storage_class is None:
        there = _names(one.name for one in listers.storage_classes)
        yield Lacking(
            f"StorageClass {claim.storage_class} of {named} does not exist",
            f"create the class, or make the claim again with another ({there})",
        )
    elif storage_class.provisioner in NO_PROVISIONER:
        yield Lacking(
            f"{named} waits for a volume of StorageClass {storage_class.name}, which has no provisioner",
            f"make a PersistentVolume for it, or make the claim again with another class: {described}",
        )
    elif not storage_class.waits:
        made = f"{storage_class.provisioner} makes for StorageClass {storage_class.name}"
        yield Lacking(f"{named} has no volume yet, which {made}", f"the claim's events say why: {described}")


def _of_devices(pod: Pod, entry: PodResourceClaim, listers: Listers) -> Iterator[Lacking]:
    try:
        name = claim_name(pod, entry, generated_claims(pod))
    except UnresolvedClaimError:
        template = f"ResourceClaimTemplate {entry.resource_claim_template_name}"
        yield Lacking(
            f"the claim {entry.name} has not been made of {template} yet",
            f"see the events of its controller: kubectl get resourceclaimtemplates,events -n {pod.namespace}",
        )
        return
    if name is None:
        return
    claim = listers.claim_tracker.get(name, pod.namespace)
    if claim is None:
        yield Lacking(
            f"ResourceClaim {name} does not exist",
            f"create it: kubectl get resourceclaims -n {pod.namespace}",
        )
    elif claim.metadata.deletion_timestamp is not None:
        yield Lacking(
            f"ResourceClaim {name} is being deleted", "use another claim, or make it again once it is gone"
        )
    elif claim.allocation is None:
        yield from _classes(claim, listers)


def _classes(claim: ResourceClaim, listers: Listers) -> Iterator[Lacking]:
    requests = claim.spec.devices.requests
    asked = [one.exactly.device_class_name for one in requests if one.exactly is not None]
    asked += [sub.device_class_name for one in requests for sub in one.first_available]
    for name in list(dict.fromkeys(asked))[:MAX_NAMES]:
        if listers.device_classes.get(name) is None:
            there = _names(one.name for one in listers.device_classes)
            yield Lacking(
                f"DeviceClass {name} of ResourceClaim {claim.name} does not exist",
                f"create the class, or make the claim again with another ({there})",
            )


def _names(names: Iterator[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return f"there are {', '.join(found[:MAX_NAMES])}{more}" if found else "there is none"
