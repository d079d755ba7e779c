"""Storage objects, as far as scheduling reads them: volumes, claims, classes, and what CSI drivers report.

`None` stands for an absent field wherever upstream distinguishes absent from empty.
"""

from typing import Any

import msgspec

from berth.objects.api_object import ApiObject, Int32, ObjectMeta, TypedObject
from berth.objects.label_selector import LabelSelector
from berth.objects.node import Amount
from berth.objects.node_selector import NodeSelector
from berth.objects.quantity import nanos, whole

STORAGE = "storage"

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
AVAILABLE = "Available"
LOST = "Lost"
FILESYSTEM = "Filesystem"


class CSIVolumeSource(ApiObject, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class ClaimReference(ApiObject, frozen=True):
    """The claim that a volume is bound to, or kept for."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class VolumeNodeAffinity(ApiObject, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiObject, frozen=True):
    """What the volume offers, and where it is."""

    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Amount] = {}
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ClaimReference | None = None
    csi: CSIVolumeSource | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None


class StoragePhase(ApiObject, frozen=True):
    """How far a volume or a claim has come."""

    phase: str = ""


class PersistentVolume(TypedObject, frozen=True):
    """A core/v1 PersistentVolume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: StoragePhase = StoragePhase()

    @property
    def storage_class(self) -> str:
        """The class's name, empty where it has none."""
        return _class_name(self.metadata, self.spec.storage_class_name)

    @property
    def capacity_nanos(self) -> int:
        """The volume's size in nano bytes."""
        return nanos(self.spec.capacity.get(STORAGE, 0))

    def kept_for(self, claim: "PersistentVolumeClaim") -> bool:
        """Whether its claim reference names this claim; one without a UID was written by a user."""
        ref = self.spec.claim_ref
        return (
            ref is not None
            and (ref.namespace, ref.name) == (claim.namespace, claim.name)
            and ref.uid in ("", claim.uid)
        )


class ClaimResources(ApiObject, frozen=True):
    """What a claim asks for."""

    requests: dict[str, Amount] = {}


class PersistentVolumeClaimSpec(ApiObject, frozen=True):
    """What a claim asks for, and the volume that it has."""

    access_modes: tuple[str, ...] = ()
    resources: ClaimResources = ClaimResources()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    volume_name: str = ""


class PersistentVolumeClaim(TypedObject, frozen=True):
    """A core/v1 PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: StoragePhase = StoragePhase()

    @property
    def storage_class(self) -> str:
        """The class's name, empty where it has none."""
        return _class_name(self.metadata, self.spec.storage_class_name or "")

    @property
    def bound(self) -> bool:
        """Whether the binding to its volume is complete."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def requested_nanos(self) -> int:
        """The size asked for, in nano bytes."""
        return nanos(self.spec.resources.requests.get(STORAGE, 0))


class TopologyRequirement(ApiObject, frozen=True):
    """Values that a node label may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(ApiObject, frozen=True):
    """Requirements that have to hold together."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(TypedObject, frozen=True):
    """A storage.k8s.io/v1 StorageClass."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether its claims are bound only once a pod uses them."""
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


class VolumeNodeResources(ApiObject, frozen=True):
    """How many volumes a driver can attach to a node; None sets no limit."""

    count: Int32 | None = None


class CSINodeDriver(ApiObject, frozen=True):
    """A driver that runs on the node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None

    @property
    def limit(self) -> int | None:
        """The most volumes of the driver on the node; None: as many as there are."""
        return self.allocatable.count if self.allocatable else None


class CSINodeSpec(ApiObject, frozen=True):
    """The drivers on the node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(TypedObject, frozen=True):
    """A storage.k8s.io/v1 CSINode, named like its node."""

    spec: CSINodeSpec = CSINodeSpec()

    @property
    def migrated_plugins(self) -> frozenset[str]:
        """The in-tree volume plugins that CSI drivers have taken over on the node."""
        listed = self.metadata.annotations.get(MIGRATED_PLUGINS, "")
        return frozenset(listed.split(",")) if listed else frozenset()


class CSIDriverSpec(ApiObject, frozen=True):
    """What the scheduler has to know of a driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(TypedObject, frozen=True):
    """A storage.k8s.io/v1 CSIDriver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(TypedObject, frozen=True):
    """A storage.k8s.io/v1 CSIStorageCapacity: what is left of a class in a part of the cluster."""

    storage_class_name: str = ""
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None
    node_topology: LabelSelector | None = None

    @property
    def limit_nanos(self) -> int | None:
        """The largest volume that can be made, in nano bytes; None where nothing is known."""
        limit = self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
        return None if limit is None else nanos(limit)

    @property
    def capacity_bytes(self) -> int:
        """What is left, in bytes; 0 where nothing is known."""
        return 0 if self.capacity is None else whole(nanos(self.capacity))


class AttachedVolume(ApiObject, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiObject, frozen=True):
    """Which volume is attached where, and by which driver."""

    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume = AttachedVolume()


class VolumeAttachment(TypedObject, frozen=True):
    """A storage.k8s.io/v1 VolumeAttachment."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


def annotated(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    """The metadata with one annotation more."""
    return msgspec.structs.replace(metadata, annotations={**metadata.annotations, key: value})


def _class_name(metadata: ObjectMeta, field: str) -> str:
    """The beta annotation goes before the field, even where it is empty."""
    return metadata.annotations.get(BETA_CLASS, field)
