"""The API objects beside nodes and pods that plugins look things up in, as the watches last showed them.

Source: pkg/scheduler/scheduler.go NewInformerFactory (Kubernetes v1.36).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from berth.framework.mirrors.claim_tracker import ClaimTracker
from berth.framework.mirrors.group_trees import GroupTrees
from berth.framework.mirrors.slice_tracker import SliceTracker
from berth.framework.mirrors.store import Store
from berth.objects.api_object import TypedObject
from berth.objects.devices.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.objects.volumes.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.objects.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

__all__ = ["NO_LABELS", "AssumeCache", "Listers", "Store"]

T = TypeVar("T", bound=TypedObject)

NO_LABELS: Mapping[str, str] = {}


class AssumeCache(Generic[T]):
    """A store's objects as they are going to be once the writes that are under way have landed.

    An assumption holds for the version of the object that it was made of: as soon as the watch brings
    another version, that one counts. Source: pkg/scheduler/util/assumecache (Kubernetes v1.36).
    """

    __slots__ = ("_assumed", "_store")

    def __init__(self, store: Store[T]) -> None:
        self._store = store
        self._assumed: dict[str, T] = {}
        store.followers.append(self._stored)

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name as it is assumed to be, None where there is none."""
        stored = self._store.get(name, namespace)
        return stored if stored is None else self.latest(stored)

    def latest(self, stored: T) -> T:
        """An object of the store as it is assumed to be."""
        assumed = self._assumed.get(stored.key)
        if assumed is None:
            return stored
        if assumed.metadata.resource_version != stored.metadata.resource_version:
            del self._assumed[stored.key]
            return stored
        return assumed

    def _stored(self, key: str) -> None:
        """Let go of an assumption about a version that is gone, though it is not asked for again."""
        assumed, stored = self._assumed.get(key), self._store.by_key(key)
        if assumed is not None and (
            stored is None or stored.metadata.resource_version != assumed.metadata.resource_version
        ):
            del self._assumed[key]

    def assumed(self) -> Iterator[T]:
        """The objects that are assumed to be otherwise than they are stored."""
        for obj in list(self._assumed.values()):
            if self.get(obj.name, obj.namespace) is obj:
                yield obj

    def assume(self, obj: T) -> bool:
        """Take the object for the one in the store; False where the store has another version of it."""
        stored = self._store.get(obj.name, obj.namespace)
        if stored is None or stored.metadata.resource_version != obj.metadata.resource_version:
            return False
        self._assumed[obj.key] = obj
        return True

    def restore(self, objects: Iterable[T]) -> None:
        """Give these assumptions up; what was assumed otherwise meanwhile stays."""
        for obj in objects:
            if self._assumed.get(obj.key) is obj:
                del self._assumed[obj.key]


@dataclass(slots=True)
class Listers:
    """A store for each kind that the scheduler watches beside nodes and pods."""

    namespaces: Store[Namespace] = field(default_factory=Store)
    services: Store[Service] = field(default_factory=Store)
    replication_controllers: Store[ReplicationController] = field(default_factory=Store)
    replica_sets: Store[ReplicaSet] = field(default_factory=Store)
    stateful_sets: Store[StatefulSet] = field(default_factory=Store)
    pod_disruption_budgets: Store[PodDisruptionBudget] = field(default_factory=Store)
    persistent_volumes: Store[PersistentVolume] = field(default_factory=Store)
    persistent_volume_claims: Store[PersistentVolumeClaim] = field(default_factory=Store)
    storage_classes: Store[StorageClass] = field(default_factory=Store)
    csi_nodes: Store[CSINode] = field(default_factory=Store)
    csi_drivers: Store[CSIDriver] = field(default_factory=Store)
    csi_storage_capacities: Store[CSIStorageCapacity] = field(default_factory=Store)
    volume_attachments: Store[VolumeAttachment] = field(default_factory=Store)
    resource_claims: Store[ResourceClaim] = field(default_factory=Store)
    resource_slices: Store[ResourceSlice] = field(default_factory=Store)
    device_classes: Store[DeviceClass] = field(default_factory=Store)
    device_taint_rules: Store[DeviceTaintRule] = field(default_factory=Store)
    pod_groups: Store[PodGroup] = field(default_factory=Store)
    composite_pod_groups: Store[CompositePodGroup] = field(default_factory=Store)
    trees: GroupTrees = field(init=False)
    assumed_volumes: AssumeCache[PersistentVolume] = field(init=False)
    assumed_claims: AssumeCache[PersistentVolumeClaim] = field(init=False)
    claim_tracker: ClaimTracker = field(init=False)
    slice_tracker: SliceTracker = field(init=False)
    others: dict[str, Store[Any]] = field(default_factory=dict)
    """Stores of further kinds, by plural resource name such as `persistentvolumeclaims`."""

    def __post_init__(self) -> None:
        self.trees = GroupTrees(self.pod_groups, self.composite_pod_groups)
        self.assumed_volumes = AssumeCache(self.persistent_volumes)
        self.assumed_claims = AssumeCache(self.persistent_volume_claims)
        self.claim_tracker = ClaimTracker(self.resource_claims)
        self.slice_tracker = SliceTracker(self.resource_slices, self.device_taint_rules)

    @property
    def generation(self) -> int:
        """How many changes all stores have seen together."""
        own = (getattr(self, each.name) for each in fields(self))
        stores = (each for each in own if isinstance(each, Store))
        return sum(store.generation for store in (*stores, *self.others.values()))

    def store(self, plural: str) -> Store[Any]:
        """The store of a kind that only some plugins need."""
        return self.others.setdefault(plural, Store())

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace, none where it is not known."""
        namespace = self.namespaces.get(name)
        return namespace.labels if namespace else NO_LABELS
