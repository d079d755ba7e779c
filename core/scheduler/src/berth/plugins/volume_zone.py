"""VolumeZone: a pod goes where its volumes are, as the volumes' zone and region labels tell.

Source: pkg/scheduler/framework/plugins/volumezone (Kubernetes v1.36).
"""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reason,
    ReasonCodes,
)
from berth.framework.status import SKIP, Code, unresolvable
from berth.objects.label_selector import Requirement
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.objects.pods.pod_volumes import named_claims
from berth.objects.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_DELIMITER
from berth.objects.volumes.storage import PersistentVolume, StorageClass
from berth.plugins.in_tree import InTreePlugin, first_reason
from berth.plugins.pod_volumes import NAMED_CLAIM, claim_not_found, volumes_cache_key, volumes_signature
from berth.plugins.queueing import expected, maybe, queue_if
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
NEW_NAMES = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class PlaceRequirement(NamedTuple):
    """A label that the node must have, with one of these values."""

    key: str
    values: frozenset[str]


class VolumeZones(msgspec.Struct, frozen=True):
    """Where the pod's volumes are."""

    requirements: tuple[PlaceRequirement, ...]


class UnservableClaimError(Exception):
    """A claim that no node can serve as it is; the text is upstream's."""


class VolumeZone(InTreePlugin, PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Turn down nodes in other zones or regions than the pod's volumes."""

    concerns = frozenset({PodFeature.VOLUMES})
    reasons = (Reason("node(s) had no available volume zone", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Collect the places of the volumes; a claim without a volume ends the attempt."""
        del nodes
        found: dict[PlaceRequirement, None] = {}
        try:
            for name in named_claims(pod):
                volume = self._volume(pod.namespace, name)
                if volume is not None:
                    found |= dict.fromkeys(places(volume))
        except UnservableClaimError as error:
            return PreFilterResult(unresolvable(str(error)))
        if not found:
            return PreFilterResult(SKIP)
        state.write(VolumeZones, VolumeZones(tuple(found)))
        return PreFilterResult()

    def _volume(self, namespace: str, name: str) -> PersistentVolume | None:
        """The claim's volume, None where it is chosen later.

        Raises: RejectedClaimError.
        """
        if not name:
            raise UnservableClaimError("PersistentVolumeClaim had no name")
        claim = self.handle.listers.persistent_volume_claims.get(name, namespace)
        if claim is None:
            raise UnservableClaimError(claim_not_found(name))
        if not claim.spec.volume_name:
            self._check_waits(claim.storage_class)
            return None
        volume = self.handle.listers.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            raise UnservableClaimError(f'persistentvolume "{claim.spec.volume_name}" not found')
        return volume

    def _check_waits(self, class_name: str) -> None:
        if not class_name:
            raise UnservableClaimError("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self.handle.listers.storage_classes.get(class_name)
        if storage_class is None:
            raise UnservableClaimError(f'storageclass.storage.k8s.io "{class_name}" not found')
        if storage_class.volume_binding_mode is None:
            raise UnservableClaimError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if not storage_class.waits:
            raise UnservableClaimError("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 where a label is missing or shows another place; nodes without any such label pass."""
        del pod
        requirements = state.read(VolumeZones).requirements
        return nodes.answer((self.name, requirements), partial(in_other_zones, requirements))

    def sign_pod(self, pod: Pod) -> Hashable:
        """The volumes."""
        return volumes_signature(pod)

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """Nothing for pods without claims and disks."""
        del state, nodes
        return volumes_cache_key(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Everything that gives a claim its volume, a volume its place, or a node its zone."""
        changes = ActionType.ADD | ActionType.UPDATE
        nodes = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [
            ClusterEventWithHint(
                ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), after_storage_class
            ),
            ClusterEventWithHint(nodes),
            ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changes), NAMED_CLAIM),
            ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME, changes), after_volume),
        ]


def places(volume: PersistentVolume) -> Iterable[PlaceRequirement]:
    """What the volume's labels require of a node; a label with an empty place counts for nothing."""
    for key in TOPOLOGY_LABELS:
        if key in volume.labels:
            values = [value.strip() for value in volume.labels[key].split(ZONES_DELIMITER)]
            if all(values):
                yield PlaceRequirement(key, frozenset(values))


def in_other_zones(requirements: tuple[PlaceRequirement, ...], nodes: Snapshot) -> ReasonCodes:
    """Which nodes are not where the volumes are.

    Shapes: result uint8 (n,), 0 or 1.
    """
    n = len(nodes)
    labelled = np.logical_or.reduce([_has(nodes, key) for key in TOPOLOGY_LABELS])
    inside = np.ones(n, dtype=bool)
    for requirement in requirements:
        inside &= _meets(nodes, requirement)
    return first_reason(labelled & ~inside)


def _has(nodes: Snapshot, key: str) -> Mask:
    return nodes.label(key).matching(Requirement(key, "Exists"), len(nodes))


def _meets(nodes: Snapshot, requirement: PlaceRequirement) -> Mask:
    """Where the label has one of the values; for an old key that a node lacks its new name counts."""
    key, values = requirement.key, tuple(sorted(requirement.values))
    mask = nodes.label(key).matching(Requirement(key, "In", values), len(nodes))
    if key in NEW_NAMES:
        new = NEW_NAMES[key]
        renamed = nodes.label(new).matching(Requirement(new, "In", values), len(nodes))
        mask = np.where(_has(nodes, key), mask, renamed)
    return mask


def after_storage_class(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where claims of the new class wait for their pod."""
    del pod, old
    return queue_if(expected(StorageClass, new).waits)


def after_volume(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE for a new volume, and for one that moved."""
    del pod
    before, volume = maybe(PersistentVolume, old), expected(PersistentVolume, new)
    return queue_if(before is None or list(places(before)) != list(places(volume)))
