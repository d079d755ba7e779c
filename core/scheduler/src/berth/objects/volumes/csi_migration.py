"""In-tree volume plugins that CSI drivers have taken over: names, handles and topology keys.

Source: csi-translation-lib (Kubernetes v1.36).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from berth.objects.label_selector import Requirement
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.objects.volumes.storage import PersistentVolume, VolumeNodeAffinity

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONES_DELIMITER = "__"

UNSPECIFIED = "UNSPECIFIED"


class CsiVolume(NamedTuple):
    """A volume as its driver knows it; a claim without a volume yet is known by its key instead."""

    driver: str
    handle: str
    claim: str = ""


Source = Mapping[str, Any]


def _aws_handle(source: Source, volume: PersistentVolume | None) -> str:
    """`vol-1` as it is, `aws://zone/vol-1` without what comes before the last part."""
    del volume
    name = str(source.get("volumeID", ""))
    return urlsplit(name).path.strip("/") if name.startswith("aws://") else name


def _gce_handle(source: Source, volume: PersistentVolume | None) -> str:
    labels = volume.labels if volume else {}
    zones = (labels.get(ZONE) or labels.get(BETA_ZONE) or UNSPECIFIED).split(ZONES_DELIMITER)
    place = f"zones/{zones[0]}" if len(zones) == 1 else f"regions/{zones[0].rpartition('-')[0]}"
    return f"projects/{UNSPECIFIED}/{place}/disks/{source.get('pdName', '')}"


def _field(name: str) -> Callable[[Source, PersistentVolume | None], str]:
    return lambda source, _: str(source.get(name, ""))


class Migration(msgspec.Struct, frozen=True):
    """An in-tree plugin and the driver that serves its volumes.

    `counted`: its volumes count for the driver on every node that reports drivers at all.
    """

    source: str
    plugin: str
    driver: str
    handle: Callable[[Source, PersistentVolume | None], str]
    topology_key: str = ""
    counted: bool = True


MIGRATIONS = (
    Migration(
        "awsElasticBlockStore",
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        _aws_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    Migration(
        "gcePersistentDisk",
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        _gce_handle,
        "topology.gke.io/zone",
    ),
    Migration(
        "azureDisk",
        "kubernetes.io/azure-disk",
        "disk.csi.azure.com",
        _field("diskURI"),
        "topology.disk.csi.azure.com/zone",
    ),
    Migration(
        "azureFile", "kubernetes.io/azure-file", "file.csi.azure.com", _field("shareName"), counted=False
    ),
    Migration(
        "cinder",
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        _field("volumeID"),
        "topology.cinder.csi.openstack.org/zone",
    ),
    Migration(
        "vsphereVolume",
        "kubernetes.io/vsphere-volume",
        "csi.vsphere.vmware.com",
        _field("volumePath"),
        "topology.csi.vmware.com/zone",
        counted=False,
    ),
    Migration("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com", _field("volumeID")),
)

BY_PLUGIN = {migration.plugin: migration for migration in MIGRATIONS}

_SPEC_FIELDS = {
    migration: "".join(f"_{c.lower()}" if c.isupper() else c for c in migration.source)
    for migration in MIGRATIONS
}


def migration_of(volume: Source) -> Migration | None:
    """The migration of a pod's inline volume, None where it has none."""
    for migration in MIGRATIONS:
        if migration.source in volume and volume[migration.source] is not None:
            return migration
    return None


def persistent_migration(volume: PersistentVolume) -> tuple[Migration, Source] | None:
    """The migration of a persistent volume and its in-tree source, None where it has none."""
    for migration, field in _SPEC_FIELDS.items():
        source = getattr(volume.spec, field)
        if source is not None:
            return migration, source
    return None


def csi_volume(volume: PersistentVolume) -> CsiVolume | None:
    """What the volume counts as on a node; None where no driver is known to serve it."""
    if volume.spec.csi is not None:
        return CsiVolume(volume.spec.csi.driver, volume.spec.csi.volume_handle)
    found = persistent_migration(volume)
    if found is None or not found[0].counted:
        return None
    migration, source = found
    return CsiVolume(migration.driver, migration.handle(source, volume))


def translated_affinity(volume: PersistentVolume, migration: Migration) -> VolumeNodeAffinity | None:
    """The volume's node affinity with the driver's topology key for the in-tree zone label.

    Without any zone among its terms, the zones of the volume's labels are required instead.
    """
    affinity = volume.spec.node_affinity
    if not migration.topology_key:
        return affinity
    zone, regions = (BETA_ZONE, {BETA_REGION: REGION}) if _uses_beta_labels(volume) else (ZONE, {})
    if _mentions(affinity, zone):
        return _renamed(affinity, {zone: migration.topology_key, **regions})
    affinity = _renamed(affinity, regions)
    zones = sorted({z.strip() for z in volume.labels.get(zone, "").split(ZONES_DELIMITER)} - {""})
    if not zones:
        return affinity
    return _requiring(affinity, Requirement(migration.topology_key, "In", tuple(zones)))


def _uses_beta_labels(volume: PersistentVolume) -> bool:
    """Whether the volume's place is reported in the old labels: its affinity decides, then its own labels."""
    affinity = volume.spec.node_affinity
    for holds in (lambda key: _mentions(affinity, key), volume.labels.__contains__):
        if holds(ZONE) or holds(REGION):
            return False
        if holds(BETA_ZONE) or holds(BETA_REGION):
            return True
    return False


def _terms(affinity: VolumeNodeAffinity | None) -> tuple[NodeSelectorTerm, ...]:
    required = affinity.required if affinity else None
    return required.node_selector_terms if required else ()


def _mentions(affinity: VolumeNodeAffinity | None, key: str) -> bool:
    return any(r.key == key for term in _terms(affinity) for r in term.match_expressions)


def _renamed(affinity: VolumeNodeAffinity | None, keys: Mapping[str, str]) -> VolumeNodeAffinity | None:
    if affinity is None or affinity.required is None:
        return affinity
    terms = tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                Requirement(keys.get(r.key, r.key), r.operator, r.values) for r in term.match_expressions
            ),
        )
        for term in _terms(affinity)
    )
    return VolumeNodeAffinity(NodeSelector(terms))


def _requiring(affinity: VolumeNodeAffinity | None, wanted: Requirement) -> VolumeNodeAffinity:
    terms = _terms(affinity) or (NodeSelectorTerm(),)
    return VolumeNodeAffinity(
        NodeSelector(
            tuple(
                msgspec.structs.replace(term, match_expressions=(*term.match_expressions, wanted))
                for term in terms
            )
        )
    )
