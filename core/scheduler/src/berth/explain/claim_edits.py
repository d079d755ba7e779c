"""Claims of other classes, of storage and of devices, with which a pod might fit.

A claim's class cannot be changed: the claim is made again. One that was made from a template is made again
with the pod, from a changed template. A trial gives the pod a supposed claim in the place of its own.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from berth.explain.schema import Target
from berth.explain.supposed import SUPPOSED_NAME
from berth.framework.mirrors.listers import Listers
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.resource_claims import DeviceRequest, ResourceClaim
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.objects.pods.pod_volumes import claim_use
from berth.objects.volumes.storage import PersistentVolumeClaim
from berth.plugins.dynamic_resources.claims import UnresolvedClaimError, claim_name, generated_claims

MAX_CLAIMS = 4
MAX_CLASSES = 8
"""This many claims of a pod, and other classes for each, are made edits of."""

replace = msgspec.structs.replace


class ClaimEdit(NamedTuple):
    """A claim made again: `supposed` is the claim as it would be, `pod` the pod that has it."""

    kind: str
    sentence: str
    target: Target
    patch: tuple[Mapping[str, Any], ...]
    pod: Pod
    supposed: PersistentVolumeClaim | ResourceClaim


class _Place(NamedTuple):
    """Where the spec of a claim is written, and the words for making the claim again from there."""

    target: Target
    path: str
    words: str


def _of_claim(claim: PersistentVolumeClaim | ResourceClaim) -> _Place:
    target = Target(kind=type(claim).__name__, name=claim.name, namespace=claim.namespace)
    return _Place(target, "/spec", f"make the claim {claim.name} again")


def _of_volume(pod: Pod, index: int) -> _Place:
    """In the pod itself, whose volume has a template for the claim."""
    target = Target(kind="Pod", name=pod.name, namespace=pod.namespace)
    path = f"/spec/volumes/{index}/ephemeral/volumeClaimTemplate/spec"
    return _Place(
        target, path, f"make the pod again, the claim of its volume {pod.spec.volumes[index]['name']}"
    )


def _of_template(pod: Pod, name: str) -> _Place:
    target = Target(kind="ResourceClaimTemplate", name=name, namespace=pod.namespace)
    return _Place(target, "/spec/spec", f"make the pod again, the template {name} of its claim")


def _supposed(pod: Pod) -> ObjectMeta:
    return ObjectMeta(name=SUPPOSED_NAME, namespace=pod.namespace, uid=SUPPOSED_NAME)


class OtherClasses(msgspec.Struct, frozen=True):
    """Reads claims and classes as the watches brought them."""

    listers: Listers

    def of_storage(self, pod: Pod) -> Iterator[ClaimEdit]:
        """The pod's unbound claims, of each other class whose claims wait for a pod.

        Those of a class that binds at once are bound by a controller and not by the scheduler.
        """
        volumes = pod.spec.volumes
        uses = ((i, claim_use(pod, volume)) for i, volume in enumerate(volumes))
        for i, use in islice(((i, use) for i, use in uses if use), MAX_CLAIMS):
            claim = self.listers.persistent_volume_claims.get(use.name, use.namespace)
            if claim is None or claim.spec.volume_name:
                continue
            volume = {**volumes[i], "persistentVolumeClaim": {"claimName": SUPPOSED_NAME}}
            changed = pod.with_spec(replace(pod.spec, volumes=(*volumes[:i], volume, *volumes[i + 1 :])))
            place = _of_volume(pod, i) if use.ephemeral else _of_claim(claim)
            for name in self._storage_classes(claim):
                spec = replace(claim.spec, storage_class_name=name)
                yield ClaimEdit(
                    "StorageClass",
                    f"{place.words} with storageClassName: {name} (now {claim.storage_class or 'none'})",
                    place.target,
                    ({"op": "add", "path": f"{place.path}/storageClassName", "value": name},),
                    changed,
                    replace(claim, metadata=_supposed(pod), spec=spec),
                )

    def _storage_classes(self, claim: PersistentVolumeClaim) -> list[str]:
        classes = self.listers.storage_classes
        waiting = (one.name for one in classes if one.waits and one.name != claim.storage_class)
        return sorted(waiting)[:MAX_CLASSES]

    def of_devices(self, pod: Pod) -> Iterator[ClaimEdit]:
        """The pod's claims without devices, each class in them exchanged for each other one."""
        entries = pod.spec.resource_claims
        for i, entry in islice(enumerate(entries), MAX_CLAIMS):
            claim = self._of_entry(pod, entry)
            if claim is None or claim.allocation is not None:
                continue
            own = PodResourceClaim(entry.name, resource_claim_name=SUPPOSED_NAME)
            claims = (*entries[:i], own, *entries[i + 1 :])
            changed = pod.with_spec(replace(pod.spec, resource_claims=claims))
            template = entry.resource_claim_template_name
            place = _of_claim(claim) if template is None else _of_template(pod, template)
            for before, after in self._device_classes(claim):
                requests, patch = _of_class(claim.spec.devices.requests, before, after, place.path)
                spec = replace(claim.spec, devices=replace(claim.spec.devices, requests=requests))
                yield ClaimEdit(
                    "DeviceClass",
                    f"{place.words} with deviceClassName: {after} (now {before})",
                    place.target,
                    patch,
                    changed,
                    replace(claim, metadata=_supposed(pod), spec=spec),
                )

    def _of_entry(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        try:
            name = claim_name(pod, entry, generated_claims(pod))
        except UnresolvedClaimError:
            return None
        return self.listers.claim_tracker.get(name or "", pod.namespace)

    def _device_classes(self, claim: ResourceClaim) -> list[tuple[str, str]]:
        """A class of the claim, and another one."""
        exact = (request.exactly for request in claim.spec.devices.requests)
        asked = dict.fromkeys(one.device_class_name for one in exact if one is not None)
        names = sorted(one.name for one in self.listers.device_classes)
        return [(one, other) for one in asked for other in names if other != one][:MAX_CLASSES]


def _of_class(
    requests: tuple[DeviceRequest, ...], before: str, after: str, path: str
) -> tuple[tuple[DeviceRequest, ...], tuple[Mapping[str, Any], ...]]:
    """The requests for devices of that class as those for devices of another, and the patch to it.

    `path` is where the spec of the claim is written.
    """
    changed, patch = [], []
    for i, request in enumerate(requests):
        exactly = request.exactly
        if exactly is not None and exactly.device_class_name == before:
            request = replace(request, exactly=replace(exactly, device_class_name=after))  # noqa: PLW2901 - the same one
            at = f"{path}/devices/requests/{i}/exactly/deviceClassName"
            patch.append({"op": "replace", "path": at, "value": after})
        changed.append(request)
    return tuple(changed), tuple(patch)
