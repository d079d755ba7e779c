"""The volumes of a pod that tie it to claims, disks or drivers.

Source: pkg/scheduler/framework/plugins/{volumerestrictions,nodevolumelimits,volumebinding,volumezone}
(Kubernetes v1.36).
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.volumes.csi_migration import CsiVolume, migration_of
from berth.objects.volumes.storage import PersistentVolumeClaim

Volume: TypeAlias = Mapping[str, Any]


class ClaimUse(NamedTuple):
    """A claim that a pod uses; `owner` is the pod's UID where the claim is to be made for the pod alone."""

    namespace: str
    name: str
    owner: str = ""
    pod_name: str = ""

    @property
    def key(self) -> str:
        """The claim as `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def ephemeral(self) -> bool:
        """Whether the claim belongs to the pod."""
        return bool(self.pod_name)

    def owned(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim may be used: one made for a pod is controlled by it."""
        return not self.ephemeral or any(
            o.controller and o.uid == self.owner for o in claim.metadata.owner_references
        )

    @property
    def not_owned(self) -> str:
        """What is said of a claim that was not made for the pod."""
        return f"PVC {self.key} was not created for pod {self.namespace}/{self.pod_name} (pod is not owner)"


class Disk(NamedTuple):
    """A disk that a pod mounts by itself and that pods on one node cannot share at will.

    Images of Ceph are one disk only where a monitor is, too: `share_disks` compares these.
    """

    kind: str
    identity: tuple[str, ...]
    read_only: bool


DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""The fields of volumes that are disks which pods cannot share at will."""
UNCOUNTED = frozenset({"name", "configMap", "secret", "projected", "emptyDir", "downwardAPI", "hostPath"})
"""The fields of volumes that tie a pod to nothing; most pods have no others."""

PlacedVolume: TypeAlias = ClaimUse | Disk | CsiVolume
"""What is counted of a pod's volumes on its node."""


def claim_uses(pod: Pod) -> Iterator[ClaimUse]:
    """The claims of the pod, generic ephemeral volumes included, in the order of its volumes."""
    for volume in pod.spec.volumes:
        use = claim_use(pod, volume)
        if use is not None:
            yield use


def claim_use(pod: Pod, volume: Volume) -> ClaimUse | None:
    """The claim behind one volume, None where there is none."""
    source = volume.get("persistentVolumeClaim")
    if source is not None:
        return ClaimUse(pod.namespace, source.get("claimName", ""))
    if volume.get("ephemeral") is not None:
        return ClaimUse(pod.namespace, f"{pod.name}-{volume.get('name', '')}", pod.uid, pod.name)
    return None


def uses_claim(pod: Pod, name: str) -> bool:
    """Whether one of the pod's volumes uses the claim of that name in its namespace, also one made for it.

    Cost: O(1), however many volumes there are; names are collected once for each template.
    """
    if name in pod.template.derived(claim_names):
        return True
    prefix = f"{pod.name}-"
    return name.startswith(prefix) and name[len(prefix) :] in pod.template.derived(_ephemeral_volumes)


def claim_names(template: PodTemplate) -> frozenset[str]:
    """The claims that pods of the template name themselves."""
    sources = (volume.get("persistentVolumeClaim") for volume in template.spec.volumes)
    return frozenset([source.get("claimName", "") for source in sources if source is not None])


def _ephemeral_volumes(template: PodTemplate) -> frozenset[str]:
    """The names of volumes whose claims are made for each pod."""
    volumes = template.spec.volumes
    return frozenset([volume.get("name", "") for volume in volumes if _is_ephemeral(volume)])


def _is_ephemeral(volume: Volume) -> bool:
    return volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is not None


def named_claims(pod: Pod) -> list[str]:
    """The claims that the pod names itself, in order."""
    sources = (volume.get("persistentVolumeClaim") for volume in pod.spec.volumes)
    return [source.get("claimName", "") for source in sources if source is not None]


def disks(pod: Pod) -> Iterator[Disk]:
    """The disks that the pod mounts by itself."""
    for volume in pod.spec.volumes:
        yield from _disks(volume)


def _disks(volume: Volume) -> Iterator[Disk]:
    for kind in DISKS:
        if kind not in volume or (source := volume[kind]) is None:
            continue
        if kind == "gcePersistentDisk":
            yield Disk("gce", (source.get("pdName", ""),), bool(source.get("readOnly")))
        elif kind == "awsElasticBlockStore":
            yield Disk("aws", (source.get("volumeID", ""),), read_only=False)
        elif kind == "iscsi":
            yield Disk("iscsi", (source.get("iqn", ""),), bool(source.get("readOnly")))
        else:
            yield _image(source)


def _image(source: Volume) -> Disk:
    """The image of an RBD volume, whatever its monitors."""
    return Disk(
        "rbd", (source.get("pool", ""), source.get("image", "")), read_only=bool(source.get("readOnly"))
    )


def rivals(disk: Disk) -> tuple[Disk, ...]:
    """The disks that cannot be on a node together with this one."""
    writable = disk._replace(read_only=False)
    return (writable,) if disk.read_only else (writable, disk._replace(read_only=True))


def share_disks(pod: Pod, other: Pod) -> bool:
    """Whether the two cannot be on a node together because of a disk. Worked out once for each template."""
    held, wanted = other.template.derived(_held_disks), pod.template.derived(_rival_disks)
    common = () if held.isdisjoint(wanted) else held & wanted
    return any(disk.kind != "rbd" or _share_monitors(pod, other, disk) for disk in common)


def _share_monitors(pod: Pod, other: Pod, image: Disk) -> bool:
    """Whether the pod reaches the image through a monitor through which the other one mounts it so."""
    there = other.template.derived(_monitors).get(image, NO_MONITORS)
    here = pod.template.derived(_monitors)
    return any(not there.isdisjoint(here.get(own, NO_MONITORS)) for own in rivals(image))


def _held_disks(template: PodTemplate) -> frozenset[Disk]:
    return frozenset(chain.from_iterable(map(_disks, template.spec.volumes)))


def _rival_disks(template: PodTemplate) -> frozenset[Disk]:
    return frozenset(chain.from_iterable(map(rivals, template.derived(_held_disks))))


NO_MONITORS: frozenset[str] = frozenset()


def _monitors(template: PodTemplate) -> Mapping[Disk, AbstractSet[str]]:
    """The monitors of each image; looked at only where two pods name one image."""
    found: dict[Disk, set[str]] = {}
    for source in (volume.get("rbd") for volume in template.spec.volumes):
        if source is not None:
            found.setdefault(_image(source), set()).update(source.get("monitors") or ())
    return found


def has_disks(pod: Pod) -> bool:
    """Whether some volume of the pod is of a kind that cannot be shared at will."""
    return any(volume.get(kind) is not None for volume in pod.spec.volumes for kind in DISKS)


def placed_volumes(pod: Pod) -> tuple[PlacedVolume, ...]:
    """All that counts of the pod's volumes, each once."""
    return tuple(dict.fromkeys(each_placed_volume(pod))) if pod.spec.volumes else ()


def each_placed_volume(pod: Pod) -> Iterator[PlacedVolume]:
    """All that counts of the pod's volumes, one after the other."""
    for volume in pod.spec.volumes:
        if UNCOUNTED.issuperset(volume):
            continue
        yield from _disks(volume)
        counted = claim_use(pod, volume) or inline_csi_volume(volume)
        if counted is not None:
            yield counted


def inline_csi_volume(volume: Volume) -> CsiVolume | None:
    """An inline volume of an in-tree plugin as the driver counts it that took the plugin over."""
    migration = migration_of(volume)
    if migration is None or not migration.counted:
        return None
    return CsiVolume(migration.driver, migration.handle(volume[migration.source], None))


SYNTHETIC = ("configMap", "secret")


def lasting_sources(pod: Pod) -> list[dict[str, Any]]:
    """The pod's volumes without names, those made of config maps and secrets left out."""
    sources = ({k: v for k, v in volume.items() if k != "name"} for volume in pod.spec.volumes)
    return [source for source in sources if not any(kind in source for kind in SYNTHETIC)]
