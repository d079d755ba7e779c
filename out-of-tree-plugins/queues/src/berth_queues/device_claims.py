"""Devices that pods ask for, as amounts of resources: by claims, and as extended resources of classes.

    pod --spec.resourceClaims--> template, claim --requests--> N of CLASS.deviceclass.resource.k8s.io/devices
    pod --requests nvidia.com/gpu--> the class with that extendedResourceName, the same

The name is that of ResourceQuotas. Where a class has an extended resource's name, its devices count as that
resource, too, however a pod asks for them: a quota of `nvidia.com/gpu` is one of both ways. A claim that
several pods share, and one of a PodGroup, counts once: for the one of its pods that was placed first, and
after it for the next.

Source: pkg/quota/v1/evaluator/core/resource_claims.go (Kubernetes v1.36), KEP-4381, KEP-5004; of PodGroups
KEP-5729.
"""

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from berth_queues.amounts import DEVICES, Amounts, add, requests_of
from berth_queues.groups import POD_GROUPS, GroupKey, facts_of
from berth_sdk import ObjectKey, Pod, WatchedResource

GROUP = "resource.k8s.io"
CLAIMS = WatchedResource(GROUP, "v1", "resourceclaims")
TEMPLATES = WatchedResource(GROUP, "v1", "resourceclaimtemplates")
CLASSES = WatchedResource(GROUP, "v1", "deviceclasses")
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""What every class may be asked for by, as an extended resource."""
ALL = "All"
MOST_OF_A_CLAIM = 32
"""Devices of one claim: as many count for a request of all."""

log = logging.getLogger(__name__)


class ClaimKey(NamedTuple):
    """A claim, or the template that one is made of for each pod."""

    resource: str
    namespace: str
    name: str


class _Exactly(msgspec.Struct, rename="camel"):
    device_class_name: str = ""
    count: int = 1
    allocation_mode: str = ""
    admin_access: bool | None = None

    @property
    def devices(self) -> int:
        """Return how many count: none for an administrator, who sees the devices of others."""
        if self.admin_access:
            return 0
        return MOST_OF_A_CLAIM if self.allocation_mode == ALL else min(max(0, self.count), MOST_OF_A_CLAIM)


class _Request(msgspec.Struct, rename="camel"):
    exactly: _Exactly | None = None
    first_available: list[_Exactly] = []


class _Devices(msgspec.Struct):
    requests: list[_Request] = []


class _ClaimSpec(msgspec.Struct):
    devices: _Devices = msgspec.field(default_factory=_Devices)


class _Claim(msgspec.Struct):
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


class _TemplateSpec(msgspec.Struct):
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)


class _Template(msgspec.Struct):
    spec: _TemplateSpec = msgspec.field(default_factory=_TemplateSpec)


class _ClassSpec(msgspec.Struct, rename="camel"):
    extended_resource_name: str | None = None


class _ClassMetadata(msgspec.Struct, rename="camel"):
    creation_timestamp: str | None = None


class _Class(msgspec.Struct):
    metadata: _ClassMetadata = msgspec.field(default_factory=_ClassMetadata)
    spec: _ClassSpec = msgspec.field(default_factory=_ClassSpec)


class _PodClaim(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    resource_claims: list[_PodClaim] = []


class _PodClaims(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _KnownClass(NamedTuple):
    created: str
    name: str
    extended_resource: str


class PodDevices(NamedTuple):
    """What a pod asks for, as far as devices depend on it."""

    uid: str
    requests: Amounts
    claims: tuple[ClaimKey, ...]
    entries: tuple[str, ...] = ()
    """What the pod calls each of its claims."""
    group: GroupKey | None = None


class Charge(NamedTuple):
    """Whose a claim is, what says how many devices it takes, and whether it counts once for all its users."""

    shared: ClaimKey
    source: ClaimKey
    once: bool


NO_DEVICES = PodDevices("", {}, ())
_claims = msgspec.json.Decoder(_Claim)
_templates = msgspec.json.Decoder(_Template)
_classes = msgspec.json.Decoder(_Class)
_pods = msgspec.json.Decoder(_PodClaims)


def devices_of(class_name: str) -> str:
    """Return what devices of a class are called as a resource."""
    return f"{class_name}{DEVICES}"


def devices_asked(pod: Pod) -> PodDevices:
    """Return what a pod asks for."""
    if not pod.source or b'"resourceClaims"' not in pod.source:
        return PodDevices(pod.uid, requests_of(pod), ())
    try:
        entries = _pods.decode(pod.source).spec.resource_claims
    except msgspec.MsgspecError:
        return PodDevices(pod.uid, requests_of(pod), ())
    named = _named(pod.namespace, entries)
    keys, names = tuple(key for key, _ in named), tuple(name for _, name in named)
    return PodDevices(pod.uid, requests_of(pod), keys, names, facts_of(pod).group)


def _named(namespace: str, entries: Collection[_PodClaim]) -> list[tuple[ClaimKey, str]]:
    """Return the claims and templates of entries; claims once, templates as often as they are named."""
    claims = {
        ClaimKey(CLAIMS.resource, namespace, each.resource_claim_name): each.name
        for each in entries
        if each.resource_claim_name
    }
    templates = [
        (ClaimKey(TEMPLATES.resource, namespace, each.resource_claim_template_name), each.name)
        for each in entries
        if each.resource_claim_template_name
    ]
    return [*claims.items(), *templates]


@dataclass
class DeviceClaims:
    """What claims ask for, and which placed pods use them."""

    _by_key: dict[ClaimKey, Amounts] = field(default_factory=dict)
    _classes: dict[str, _KnownClass] = field(default_factory=dict)
    _of_extended: dict[str, str] = field(default_factory=dict)
    """The class of each extended resource: of several the newest."""
    _placed: dict[str, PodDevices] = field(default_factory=dict)
    """Pods on nodes that ask for devices, by UID."""
    _users: dict[ClaimKey, dict[str, None]] = field(default_factory=dict)
    """Those of each claim or template, in their order."""
    _of_groups: dict[GroupKey, frozenset[tuple[ClaimKey, str]]] = field(default_factory=dict)
    """The claims that PodGroups have made for all of their pods: templates, and what they are called."""

    def put(self, key: ObjectKey, source: bytes) -> Collection[str]:
        """Take over an object; return the placed pods that may count otherwise now. Cost: O(those)."""
        if key.resource == CLASSES.resource:
            return self._put_class(key.name, source)
        name, found = ClaimKey(key.resource, key.namespace, key.name), {}
        try:
            is_claim = key.resource == CLAIMS.resource
            spec = _claims.decode(source).spec if is_claim else _templates.decode(source).spec.spec
            found = _asked(spec)
        except msgspec.MsgspecError as error:
            log.warning("devices not counted claim=%s err=%s", f"{key.namespace}/{key.name}", error)
        if self._by_key.get(name) == found:
            return ()
        self._by_key[name] = found
        return tuple(self._users.get(name, ()))

    def remove(self, key: ObjectKey) -> Collection[str]:
        """Forget an object; as `put`. What a placed pod has of a claim goes with the pod."""
        if key.resource == CLASSES.resource:
            return self._changed_classes() if self._classes.pop(key.name, None) else ()
        name = ClaimKey(key.resource, key.namespace, key.name)
        if name not in self._users:
            self._by_key.pop(name, None)
        return ()

    def put_group(self, key: GroupKey, source: bytes) -> Collection[str]:
        """Take over the claims of a PodGroup; as `put`. Cost: O(placed pods with devices)."""
        found = frozenset[tuple[ClaimKey, str]]()
        if b'"resourceClaims"' in source:
            try:
                found = frozenset(_named(key.namespace, _pods.decode(source).spec.resource_claims))
            except msgspec.MsgspecError as error:
                log.warning("claims not counted group=%s err=%s", f"{key.namespace}/{key.name}", error)
        return self._regrouped(key, found)

    def remove_group(self, key: GroupKey) -> Collection[str]:
        """Forget the claims of a PodGroup; as `put`."""
        return self._regrouped(key, frozenset())

    def _regrouped(self, key: GroupKey, claims: frozenset[tuple[ClaimKey, str]]) -> Collection[str]:
        if claims == self._of_groups.get(key, frozenset()):
            return ()
        members = [pod for pod in self._placed.values() if pod.group == key]
        for pod in members:
            self.leave(pod.uid)
        self._of_groups.pop(key, None)
        if claims:
            self._of_groups[key] = claims
        for pod in members:
            self.hold(pod)
        return [pod.uid for pod in members]

    def charges(self, pod: PodDevices) -> Iterator[Charge]:
        """Yield the pod's claims and templates; of those of its PodGroup all of its pods have one claim."""
        of_group = self._of_groups.get(pod.group, frozenset()) if pod.group is not None else frozenset()
        for key, name in zip_longest(pod.claims, pod.entries, fillvalue=""):
            assert isinstance(key, ClaimKey), "an entry for each claim at most"
            if pod.group is not None and (key, name) in of_group:
                shared = ClaimKey(POD_GROUPS.resource, key.namespace, f"{pod.group.name}/{name}")
                yield Charge(shared, key, once=True)
            else:
                yield Charge(key, key, once=key.resource == CLAIMS.resource)

    def asked(self, pod: PodDevices, besides: Collection[ClaimKey] = ()) -> Amounts:
        """Return all that counts for a pod: requests, and devices that no other placed pod has in a claim.

        Claims in `besides` count for another pod.
        """
        uid, requests = pod.uid, pod.requests
        if not pod.claims and not any(map(self._class_of, requests)):
            return requests
        devices: dict[str, int] = {}
        for shared, source, once in self.charges(pod):
            first = next(iter(self._users.get(shared, ())), uid) if once else uid
            if shared not in besides and first == uid:
                add(devices, self._by_key.get(source, {}))
        total = dict(requests)
        for name, count in requests.items():
            if of_class := self._class_of(name):
                add(total, {devices_of(of_class): count})
                self._add_extended(total, of_class, count, name)
        for name, count in devices.items():
            add(total, {devices_of(name): count})
            self._add_extended(total, name, count)
        return total

    def hold(self, pod: PodDevices) -> None:
        """Note that a pod is on a node; nothing is kept of one without devices."""
        if not pod.claims and not any("/" in name for name in pod.requests):
            return
        self._placed[pod.uid] = pod
        for charge in self.charges(pod):
            for key in (charge.shared, charge.source):
                self._users.setdefault(key, {})[pod.uid] = None

    def leave(self, uid: str) -> list[str]:
        """Note that a pod is on no node; return the pods for which its claims count now."""
        pod = self._placed.pop(uid, None)
        heirs: dict[str, None] = {}
        for charge in () if pod is None else self.charges(pod):
            if self._drop_user(charge.shared, uid) and charge.once:
                heirs[next(iter(self._users[charge.shared]))] = None
            self._drop_user(charge.source, uid)
        return list(heirs)

    def _drop_user(self, key: ClaimKey, uid: str) -> bool:
        """Return whether it was the first user, and others are left."""
        users = self._users.get(key, {})
        was_first = next(iter(users), None) == uid
        users.pop(uid, None)
        if not users:
            self._users.pop(key, None)
        return was_first and bool(users)

    def placed(self, uid: str) -> PodDevices | None:
        """Return a pod on a node that asks for devices, None for any other."""
        return self._placed.get(uid)

    def of_nodes(self, name: str) -> bool:
        """Return whether nodes themselves say how much they have of a resource, and no slices of devices."""
        return not name.endswith(DEVICES) and not self._class_of(name)

    def clear(self) -> None:
        """Forget everything."""
        for table in (self._by_key, self._classes, self._of_extended, self._placed, self._users):
            table.clear()
        self._of_groups.clear()

    def _class_of(self, resource: str) -> str:
        if resource.startswith(IMPLICIT):
            return resource.removeprefix(IMPLICIT)
        return self._of_extended.get(resource, "")

    def _add_extended(self, total: dict[str, int], of_class: str, count: int, but: str = "") -> None:
        known = self._classes.get(of_class)
        if known is not None and known.extended_resource and known.extended_resource != but:
            add(total, {known.extended_resource: count})

    def _put_class(self, name: str, source: bytes) -> Collection[str]:
        try:
            found = _classes.decode(source)
        except msgspec.MsgspecError as error:
            log.warning("extended resource not known class=%s err=%s", name, error)
            found = _Class()
        extended = found.spec.extended_resource_name or ""
        before = self._classes.get(name)
        self._classes[name] = _KnownClass(found.metadata.creation_timestamp or "", name, extended)
        return () if before is not None and before == self._classes[name] else self._changed_classes()

    def _changed_classes(self) -> Collection[str]:
        named = (each for each in sorted(self._classes.values()) if each.extended_resource)
        self._of_extended = {each.extended_resource: each.name for each in named}
        return tuple(self._placed)


def _asked(spec: _ClaimSpec) -> dict[str, int]:
    """Return how many devices of each class a claim may take: of alternatives the most of each."""
    total: dict[str, int] = {}
    for request in spec.devices.requests:
        for name, count in _of_request(request):
            add(total, {name: count})
    return total


def _of_request(request: _Request) -> Iterator[tuple[str, int]]:
    if request.exactly is not None:
        yield request.exactly.device_class_name, request.exactly.devices
    most: dict[str, int] = {}
    for each in request.first_available:
        most[each.device_class_name] = max(most.get(each.device_class_name, 0), each.devices)
    yield from most.items()
