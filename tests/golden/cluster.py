"""A scenario's cluster, put together from the parts that a running scheduler is made of."""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from berth.cache.cache import Cache
from berth.config.loading import LoadedConfig, load
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.mirrors.listers import Listers
from berth.framework.runtime import Framework
from berth.objects.decode import decoder
from berth.objects.devices.devices import DeviceClass, ResourceSlice
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_decoding import decode_pod
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
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.snapshot.snapshot import Snapshot
from berth.testing.handles import FixedNominator, make_handle

read_node, read_pod = decoder(Node), decode_pod

STORES = {
    "namespaces": ("namespaces", decoder(Namespace)),
    "services": ("services", decoder(Service)),
    "replicationcontrollers": ("replication_controllers", decoder(ReplicationController)),
    "replicasets": ("replica_sets", decoder(ReplicaSet)),
    "statefulsets": ("stateful_sets", decoder(StatefulSet)),
    "poddisruptionbudgets": ("pod_disruption_budgets", decoder(PodDisruptionBudget)),
    "persistentvolumes": ("persistent_volumes", decoder(PersistentVolume)),
    "persistentvolumeclaims": ("persistent_volume_claims", decoder(PersistentVolumeClaim)),
    "storageclasses": ("storage_classes", decoder(StorageClass)),
    "csinodes": ("csi_nodes", decoder(CSINode)),
    "csidrivers": ("csi_drivers", decoder(CSIDriver)),
    "csistoragecapacities": ("csi_storage_capacities", decoder(CSIStorageCapacity)),
    "volumeattachments": ("volume_attachments", decoder(VolumeAttachment)),
    "resourceclaims": ("resource_claims", decoder(ResourceClaim)),
    "resourceslices": ("resource_slices", decoder(ResourceSlice)),
    "deviceclasses": ("device_classes", decoder(DeviceClass)),
}
STORAGE_KINDS = {
    kind.__name__: kind
    for kind in (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        VolumeAttachment,
    )
}


@dataclass(slots=True)
class Cluster:
    """A snapshot, the nominations and objects around it, and the profiles of the scenario's configuration."""

    cache: Cache
    snapshot: Snapshot
    nominator: FixedNominator
    listers: Listers
    frameworks: dict[str, Framework] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    """Plugins that the profiles name and that have no implementation."""

    def search(self) -> NodeSearch:
        """The search that looks at every node."""
        return NodeSearch(self.nominator, Rotation())

    def answers(self, pod: Pod) -> CachedEvaluation:
        """Nothing known of the pod's class yet."""
        return CachedEvaluation(NodePlugins(self.frameworks[pod.spec.scheduler_name].plugins))

    def attempt(self, pod: Pod) -> Attempt:
        """An attempt at the pod that remembers nothing yet."""
        return Attempt(pod, self.snapshot, CycleState(), CycleRecord(pod, "", 1, b"", b"", 0, 0, 0))


def pod_of(document: dict[str, Any]) -> Pod:
    """The typed pod, decoded from bytes as one from the API server is."""
    return read_pod(json.dumps(document).encode())


def node_of(document: dict[str, Any]) -> Node:
    """The typed node, decoded from bytes as one from the API server is."""
    return read_node(json.dumps(document).encode())


def storage_of(kind: str, document: dict[str, Any]):
    """The typed object of a storage kind, the document itself of any other."""
    if kind not in STORAGE_KINDS:
        return document
    return decoder(STORAGE_KINDS[kind])(json.dumps(document).encode())


def build(scenario: dict[str, Any]) -> Cluster:
    """The scenario's cluster."""
    objects = scenario.get("objects", {})
    pods = [pod_of(document) for document in objects.get("pods", ())]
    cache, snapshot = _filled([node_of(document) for document in objects.get("nodes", ())], pods), Snapshot()
    cache.update_snapshot(snapshot)
    waiting = [pod for pod in pods if not pod.node_name]
    cluster = Cluster(cache, snapshot, FixedNominator.of(waiting), _listers(objects))
    _add_profiles(cluster, scenario.get("config"))
    return cluster


def _filled(nodes: list[Node], pods: list[Pod]) -> Cache:
    cache = Cache()
    for node in nodes:
        cache.add_node(node)
    for pod in pods:
        if pod.node_name:
            cache.add_pod(pod)
    return cache


def _listers(objects: dict[str, Any]) -> Listers:
    listers = Listers()
    for plural, (attribute, decode) in STORES.items():
        for document in objects.get(plural, ()):
            getattr(listers, attribute).put(decode(json.dumps(document).encode()))
    return listers


def _add_profiles(cluster: Cluster, config: dict[str, Any] | None) -> None:
    loaded = _loaded(None if config is None else json.dumps(config))

    def handle(name: str):
        return make_handle(
            cluster.snapshot,
            listers=cluster.listers,
            nominator=cluster.nominator,
            profile_name=name,
            frameworks=cluster.frameworks,
        )

    cluster.frameworks.update(build_frameworks(loaded.profiles, IN_TREE, handle))
    points = (point for profile in loaded.profiles for point in profile.points.values())
    cluster.missing = {plugin for point in points for plugin, _ in point} - IN_TREE.keys()


@cache
def _loaded(text: str | None) -> LoadedConfig:
    return load(text)
