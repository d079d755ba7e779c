"""Extended resources that devices stand behind: the claim that the scheduler makes for a pod's requests.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go (Kubernetes v1.36).
"""

from collections.abc import Iterator, Mapping

import msgspec

from berth.framework.mirrors.listers import Store
from berth.objects.api_object import ObjectMeta, OwnerReference
from berth.objects.devices.devices import DeviceClass
from berth.objects.devices.resource_claims import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import pod_requests
from berth.objects.pods.pod_spec import Container
from berth.objects.quantity import nanos, whole
from berth.plugins.device_classes import DeviceClassNames, is_device_resource

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY_NAME = "<extended-resources>"


class ExtendedResources(msgspec.Struct, frozen=True):
    """What a pod requests of them, the classes behind, and the claim, made already or in memory only."""

    requests: Mapping[str, int]
    classes: Mapping[str, DeviceClass]
    claim: ResourceClaim

    @property
    def made_before(self) -> bool:
        """Whether the claim was made in an earlier attempt."""
        return bool(self.claim.spec.devices.requests)

    @property
    def mapped(self) -> list[str]:
        """The resources that a class stands behind, in order."""
        return sorted(self.classes)


class ContainerMapping(msgspec.Struct, frozen=True):
    """Which request of the claim serves which resource of which container."""

    container: str
    resource: str
    request: str


class MadeClaims:
    """The claims that were made for pods' extended resources; follows the store when it is asked."""

    def __init__(self, claims: Store[ResourceClaim]) -> None:
        self._claims = claims
        self._seen = 0
        self._pod_of: dict[str, str] = {}
        """By the claim's key, the pod's UID."""
        self._of_pod: dict[str, dict[str, None]] = {}

    def of(self, pod: Pod) -> ResourceClaim | None:
        """The pod's claim, None where there is none."""
        changes = self._claims.changes
        if self._seen != changes.end:
            changed = changes.since(self._seen)
            self._seen = changes.end
            if changed is None:
                changed = (*self._pod_of, *(claim.key for claim in self._claims))
            for key in changed:
                self._follow(key)
        for key in self._of_pod.get(pod.uid, ()):
            claim = self._claims.by_key(key)
            if claim is not None and claim.namespace == pod.namespace:
                return claim
        return None

    def _follow(self, key: str) -> None:
        claim = self._claims.by_key(key)
        uid = None if claim is None else _made_for(claim)
        before = self._pod_of.get(key)
        if uid == before:
            return
        if before is not None:
            del self._pod_of[key], self._of_pod[before][key]
            if not self._of_pod[before]:
                del self._of_pod[before]
        if uid is not None:
            self._pod_of[key] = uid
            self._of_pod.setdefault(uid, {})[key] = None


def extended_resources(pod: Pod, names: DeviceClassNames, made: MadeClaims) -> ExtendedResources | None:
    """The pod's requests of extended resources, None where no class stands behind any of them."""
    requests = {
        name: whole(amount)
        for name, amount in pod_requests(pod).items()
        if amount and is_device_resource(name)
    }
    classes = {name: found for name in requests if (found := names.behind(name)) is not None}
    if not classes:
        return None
    return ExtendedResources(requests, classes, made.of(pod) or in_memory_claim(pod))


def backed_by_devices(pod: Pod, names: DeviceClassNames) -> bool:
    """Whether a class stands behind something that the pod requests.

    Cost: names are looked at first; requests are only added up where some name has a class.
    """
    lists = [container.resources.requests for container in (*pod.spec.containers, *pod.spec.init_containers)]
    backed = {
        name
        for requests in (*lists, pod.spec.overhead)
        for name in requests or ()
        if is_device_resource(name) and names.behind(name) is not None
    }
    if not backed:
        return False
    total = pod_requests(pod)
    return any(total.get(name) for name in backed)


def _made_for(claim: ResourceClaim) -> str | None:
    """The UID of the pod that the claim was made for; an object has one controller."""
    meta = claim.metadata
    if meta.annotations.get(ANNOTATION) != "true":
        return None
    return next((owner.uid for owner in meta.owner_references if owner.controller), None)


def in_memory_claim(pod: Pod) -> ResourceClaim:
    """A claim that exists only here until the pod is about to be bound."""
    owner = OwnerReference("v1", "Pod", pod.name, pod.uid, controller=True)
    return ResourceClaim(
        ObjectMeta(
            name=IN_MEMORY_NAME,
            namespace=pod.namespace,
            uid=f"{pod.uid}{IN_MEMORY_NAME}",
            annotations={ANNOTATION: "true"},
            owner_references=(owner,),
        )
    )


def with_requests(
    claim: ResourceClaim, pod: Pod, classes: Mapping[str, DeviceClass]
) -> tuple[ResourceClaim, list[ContainerMapping]]:
    """The claim with a request for each container and resource that devices serve, and who uses which."""
    made, mappings = _Requests(pod, classes).all()
    spec = ResourceClaimSpec(DeviceClaim(tuple(made)))
    return msgspec.structs.replace(claim, spec=spec), mappings


class _Requests:
    """Containers one by one. Init containers run before the others, so they take what those get later."""

    def __init__(self, pod: Pod, classes: Mapping[str, DeviceClass]) -> None:
        self._init = len(pod.spec.init_containers)
        self._containers = (*pod.spec.init_containers, *pod.spec.containers)
        self._classes = classes

    def all(self) -> tuple[list[DeviceRequest], list[ContainerMapping]]:
        requests: list[DeviceRequest] = []
        mappings: list[ContainerMapping] = []
        for resource in sorted(self._classes):
            for index, name, count in self._counts(resource):
                wanted = ExactDeviceRequest(
                    device_class_name=self._classes[resource].name, allocation_mode=EXACT_COUNT, count=count
                )
                requests.append(DeviceRequest(name, wanted))
                if not self._short_lived(index):
                    mappings.append(ContainerMapping(self._containers[index].name, resource, name))
            mappings.extend(self._used_at_start(resource))
        return requests, mappings

    def _counts(self, resource: str) -> Iterator[tuple[int, str, int]]:
        """Each container, by its index, that gets devices of its own."""
        peak = self._peak(resource)
        for index, container in enumerate(self._containers):
            count = _requested(container, resource)
            if self._short_lived(index):
                count = self._extra(index, resource) if index == peak else 0
            if count > 0:
                yield index, self._name(index, resource), count

    def _used_at_start(self, resource: str) -> Iterator[ContainerMapping]:
        """Whose devices each init container uses before they do, and then its extra ones, or another's."""
        peak = self._peak(resource)
        for index, container in enumerate(self._containers):
            left = _requested(container, resource) if self._short_lived(index) else 0
            for other in self._later(index):
                count = _requested(self._containers[other], resource)
                if left > 0 and count:
                    yield ContainerMapping(container.name, resource, self._name(other, resource))
                    left -= count
            if left > 0 and peak is not None:
                yield ContainerMapping(container.name, resource, self._name(peak, resource))

    def _peak(self, resource: str) -> int | None:
        """The init container that needs most beyond what later containers get."""
        extras = [(self._extra(i, resource), -i) for i in range(self._init) if self._short_lived(i)]
        most, index = max(extras, default=(0, 0))
        return -index if most > 0 else None

    def _extra(self, index: int, resource: str) -> int:
        reusable = sum(_requested(self._containers[other], resource) for other in self._later(index))
        return _requested(self._containers[index], resource) - reusable

    def _later(self, index: int) -> Iterator[int]:
        return (other for other in range(index + 1, len(self._containers)) if not self._short_lived(other))

    def _short_lived(self, index: int) -> bool:
        return index < self._init and not self._containers[index].restartable

    def _name(self, index: int, resource: str) -> str:
        names = sorted(self._containers[index].resources.requests or ())
        return f"container-{index}-request-{names.index(resource)}"


def _requested(container: Container, resource: str) -> int:
    amount = (container.resources.requests or {}).get(resource)
    return 0 if amount is None else whole(nanos(amount))
