"""Claims of other classes, of storage and of devices, with which a pod might fit.

A claim's class cannot be changed: the claim is made again. A trial gives the pod a supposed claim in the
place of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from berth.explain.schema import Target
from berth.explain.supposed import SUPPOSED_NAME
from berth.framework.listers import Listers
from berth.objects.api_object import ObjectMeta
from berth.objects.pod import Pod
from berth.objects.pod_spec import PodResourceClaim
from berth.objects.pod_volumes import claim_use
from berth.objects.resource_claims import DeviceRequest, ResourceClaim
from berth.objects.storage import PersistentVolumeClaim

MOST_CLAIMS = 4
MOST_CLASSES = 8
"""So many claims of a pod, and other classes for each, are made edits of."""

replace = msgspec.structs.replace


class ClaimEdit(NamedTuple):
    """A claim made again: `supposed` is the claim as it would be, `pod` the pod that has it."""

    kind: str
    sentence: str
    target: Target
    patch: tuple[Mapping[str, Any], ...]
    pod: Pod
    supposed: PersistentVolumeClaim | ResourceClaim


def _supposed(pod: Pod) -> ObjectMeta:
    return ObjectMeta(name=SUPPOSED_NAME, namespace=pod.namespace, uid=SUPPOSED_NAME)


@dataclass(frozen=True, slots=True)
class OtherClasses:
    """Reads claims and classes as the watches brought them."""

    listers: Listers

    def of_storage(self, pod: Pod) -> Iterator[ClaimEdit]:
        """Unbound claims that the pod names, of each other class whose claims wait for a pod.

        Those of a class that binds at once are bound by a controller and not by the scheduler.
        """
        volumes = pod.spec.volumes
        named = ((i, claim_use(pod, volume)) for i, volume in enumerate(volumes))
        for i, use in islice(((i, use) for i, use in named if use and not use.ephemeral), MOST_CLAIMS):
            claim = self.listers.persistent_volume_claims.get(use.name, use.namespace)
            if claim is None or claim.spec.volume_name:
                continue
            volume = {**volumes[i], "persistentVolumeClaim": {"claimName": SUPPOSED_NAME}}
            changed = pod.with_spec(replace(pod.spec, volumes=(*volumes[:i], volume, *volumes[i + 1 :])))
            for name in self._storage_classes(claim):
                spec = replace(claim.spec, storage_class_name=name)
                yield ClaimEdit(
                    "StorageClass",
                    f"make the claim {claim.name} again with storageClassName: {name} "
                    f"(now {claim.storage_class or 'none'})",
                    Target(kind="PersistentVolumeClaim", name=claim.name, namespace=claim.namespace),
                    ({"op": "add", "path": "/spec/storageClassName", "value": name},),
                    changed,
                    replace(claim, metadata=_supposed(pod), spec=spec),
                )

    def _storage_classes(self, claim: PersistentVolumeClaim) -> list[str]:
        classes = self.listers.storage_classes
        waiting = (one.name for one in classes if one.waits and one.name != claim.storage_class)
        return sorted(waiting)[:MOST_CLASSES]

    def of_devices(self, pod: Pod) -> Iterator[ClaimEdit]:
        """Claims without devices that the pod names, each class in them exchanged for each other one."""
        entries = pod.spec.resource_claims
        for i, entry in islice(enumerate(entries), MOST_CLAIMS):
            claim = self.listers.claim_tracker.get(entry.resource_claim_name or "", pod.namespace)
            if claim is None or claim.allocation is not None:
                continue
            own = PodResourceClaim(entry.name, resource_claim_name=SUPPOSED_NAME)
            claims = (*entries[:i], own, *entries[i + 1 :])
            changed = pod.with_spec(replace(pod.spec, resource_claims=claims))
            for before, after in self._device_classes(claim):
                requests, patch = _of_class(claim.spec.devices.requests, before, after)
                spec = replace(claim.spec, devices=replace(claim.spec.devices, requests=requests))
                yield ClaimEdit(
                    "DeviceClass",
                    f"make the claim {claim.name} again with deviceClassName: {after} (now {before})",
                    Target(kind="ResourceClaim", name=claim.name, namespace=claim.namespace),
                    patch,
                    changed,
                    replace(claim, metadata=_supposed(pod), spec=spec),
                )

    def _device_classes(self, claim: ResourceClaim) -> list[tuple[str, str]]:
        """A class of the claim, and another one."""
        exact = (request.exactly for request in claim.spec.devices.requests)
        asked = dict.fromkeys(one.device_class_name for one in exact if one is not None)
        names = sorted(one.name for one in self.listers.device_classes)
        return [(one, other) for one in asked for other in names if other != one][:MOST_CLASSES]


def _of_class(
    requests: tuple[DeviceRequest, ...], before: str, after: str
) -> tuple[tuple[DeviceRequest, ...], tuple[Mapping[str, Any], ...]]:
    """The requests for devices of that class as those for devices of another, and the patch to it."""
    changed, patch = [], []
    for i, request in enumerate(requests):
        exactly = request.exactly
        if exactly is not None and exactly.device_class_name == before:
            request = replace(request, exactly=replace(exactly, device_class_name=after))  # noqa: PLW2901 - the same one
            path = f"/spec/devices/requests/{i}/exactly/deviceClassName"
            patch.append({"op": "replace", "path": path, "value": after})
        changed.append(request)
    return tuple(changed), tuple(patch)
