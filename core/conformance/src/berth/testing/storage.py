"""Storage objects for tests, as short as what matters of them, and the stores that hold them."""

from collections.abc import Iterable, Mapping
from typing import Any

from berth.framework.mirrors.listers import Listers
from berth.objects.api_object import ObjectMeta, OwnerReference, TypedObject
from berth.objects.label_selector import Requirement
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.objects.pods.pod import Pod
from berth.objects.volumes.storage import (
    AVAILABLE,
    BIND_COMPLETED,
    MIGRATED_PLUGINS,
    WAIT_FOR_FIRST_CONSUMER,
    AttachedVolume,
    ClaimReference,
    ClaimResources,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    CSIVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    StoragePhase,
    VolumeAttachment,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)

READ_WRITE_ONCE = ("ReadWriteOnce",)


def make_claim(
    name: str = "c0",
    *,
    namespace: str = "default",
    volume_name: str = "",
    bound: bool | None = None,
    storage_class: str | None = "wait",
    size: str = "1Gi",
    modes: Iterable[str] = READ_WRITE_ONCE,
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    phase: str = "",
    version: str = "1",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim, bound where it has a volume; further keywords are fields of its spec."""
    notes = dict(annotations or {})
    if volume_name if bound is None else bound:
        notes[BIND_COMPLETED] = "yes"
    owners = (OwnerReference(kind="Pod", name=owner.name, uid=owner.uid, controller=True),) if owner else ()
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"claim-{name}",
            resource_version=version,
            annotations=notes,
            owner_references=owners,
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(modes),
            resources=ClaimResources({"storage": size}),
            storage_class_name=storage_class,
            volume_name=volume_name,
            **spec,
        ),
        status=StoragePhase(phase),
    )


def make_volume(
    name: str = "v0",
    *,
    storage_class: str = "wait",
    size: str = "1Gi",
    modes: Iterable[str] = READ_WRITE_ONCE,
    labels: Mapping[str, str] | None = None,
    near: Mapping[str, Iterable[str]] | None = None,
    node_affinity: VolumeNodeAffinity | None = None,
    kept_for: PersistentVolumeClaim | None = None,
    driver: str = "",
    phase: str = AVAILABLE,
    version: str = "1",
    **spec: Any,
) -> PersistentVolume:
    """A volume; `near` are the node labels that it asks for, further keywords fields of its spec."""
    reference = (
        None
        if kept_for is None
        else ClaimReference(namespace=kept_for.namespace, name=kept_for.name, uid=kept_for.uid)
    )
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name, uid=f"volume-{name}", resource_version=version, labels=dict(labels or {})
        ),
        spec=PersistentVolumeSpec(
            access_modes=tuple(modes),
            capacity={"storage": size},
            storage_class_name=storage_class,
            node_affinity=node_affinity if near is None else VolumeNodeAffinity(NodeSelector((_term(near),))),
            claim_ref=reference,
            csi=CSIVolumeSource(driver, name) if driver else None,
            **spec,
        ),
        status=StoragePhase(phase),
    )


def _term(labels: Mapping[str, Iterable[str]]) -> NodeSelectorTerm:
    return NodeSelectorTerm(tuple(Requirement(key, "In", tuple(values)) for key, values in labels.items()))


def make_class(
    name: str = "wait",
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = WAIT_FOR_FIRST_CONSUMER,
    **fields: Any,
) -> StorageClass:
    """A class that waits for the first pod, with no provisioner."""
    return StorageClass(
        metadata=ObjectMeta(name=name, uid=f"class-{name}"),
        provisioner=provisioner,
        volume_binding_mode=mode,
        **fields,
    )


def make_csi_node(name: str, limits: Mapping[str, int | None], *, migrated: str = "") -> CSINode:
    """The drivers on a node, each with its limit."""
    drivers = (CSINodeDriver(driver, VolumeNodeResources(limit)) for driver, limit in limits.items())
    notes = {MIGRATED_PLUGINS: migrated} if migrated else {}
    return CSINode(metadata=ObjectMeta(name=name, annotations=notes), spec=CSINodeSpec(tuple(drivers)))


def make_csi_driver(name: str, **spec: Any) -> CSIDriver:
    """A driver; keywords are fields of its spec."""
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(**spec))


def make_capacity(name: str, storage_class: str, capacity: str | None, **fields: Any) -> CSIStorageCapacity:
    """What a class has left in a part of the cluster."""
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system", uid=f"capacity-{name}"),
        storage_class_name=storage_class,
        capacity=capacity,
        **fields,
    )


def make_attachment(name: str, driver: str, node_name: str, volume_name: str) -> VolumeAttachment:
    """A volume that is attached to a node."""
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(driver, node_name, AttachedVolume(volume_name)),
    )


def claim_volume(claim_name: str) -> dict[str, Any]:
    """A pod's volume that names a claim."""
    return {"name": claim_name, "persistentVolumeClaim": {"claimName": claim_name}}


_STORES = {
    PersistentVolume: "persistent_volumes",
    PersistentVolumeClaim: "persistent_volume_claims",
    StorageClass: "storage_classes",
    CSINode: "csi_nodes",
    CSIDriver: "csi_drivers",
    CSIStorageCapacity: "csi_storage_capacities",
    VolumeAttachment: "volume_attachments",
}


def listers_with(*objects: TypedObject) -> Listers:
    """Stores that hold these storage objects."""
    listers = Listers()
    put(listers, *objects)
    return listers


def put(listers: Listers, *objects: TypedObject) -> None:
    """Add storage objects or new versions of them."""
    for obj in objects:
        getattr(listers, _STORES[type(obj)]).put(obj)
