"""The scheduler's writes, applied to the cluster in memory; the controllers that respond to them act at once.

    bind, status, deletion --> pods            keep, select --> volumes and claims, bound in place of the
    reserve, unreserve ----> resource claims                    volume controller

A write fails only where a real API server would refuse it: a pod, claim or group that was deleted.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from berth.framework.clock import Clock
from berth.framework.handle import NO_ANNOTATIONS, OnBound, PodGoneError
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.ports.claim_writing import ClaimWriteError
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.resource_claims import Allocation, Consumer, ResourceClaim
from berth.objects.label_selector import InvalidSelectorError, compile_selector
from berth.objects.node import Node
from berth.objects.node_selector import NodeSelector
from berth.objects.pod_groups import PodGroupCondition
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.volumes.storage import (
    AVAILABLE,
    BIND_COMPLETED,
    SELECTED_NODE,
    ClaimReference,
    CSIVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    StoragePhase,
    VolumeNodeAffinity,
)
from berth.objects.workloads import PodDisruptionBudget
from berth.simulation.cluster.state import ClusterState

BOUND = "Bound"
ZONE = "topology.kubernetes.io/zone"


class BindRefusedError(Exception):
    """The pod was deleted or replaced."""


class PodsInMemory:
    """Implements berth.framework.handle.ApiWriter; `on_bound` is called with each bound pod."""

    def __init__(self, state: ClusterState, clock: Clock, on_bound: Callable[[Pod], None]) -> None:
        self._state = state
        self._clock = clock
        self._on_bound = on_bound

    def bind(
        self, pod: Pod, node_name: str, done: OnBound, annotations: Mapping[str, str] = NO_ANNOTATIONS
    ) -> None:
        """Put the pod on the node, where it runs at once."""
        current = self._state.get(Pod, pod.key)
        if current is None or current.uid != pod.uid or current.node_name:
            done(BindRefusedError(f'pods "{pod.key}" not found, or bound already'))
            return
        status = msgspec.structs.replace(
            current.status,
            phase="Running",
            nominated_node_name="",
            start_time=datetime.fromtimestamp(self._clock.wall(), UTC),
        )
        metadata = current.metadata
        if annotations:
            metadata = msgspec.structs.replace(metadata, annotations={**metadata.annotations, **annotations})
        bound = self._state.put(
            msgspec.structs.replace(current.placed_on(node_name), metadata=metadata, status=status)
        )
        done(None)
        self._on_bound(bound)

    async def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Set the pod's condition and nominated node. Raises: PodGoneError."""
        current = self._current(pod)
        status = current.status
        if condition is not None:
            others = tuple(c for c in status.conditions if c.type != condition.type)
            status = msgspec.structs.replace(status, conditions=(*others, condition))
        if nominated_node_name is not None:
            status = msgspec.structs.replace(status, nominated_node_name=nominated_node_name)
        if status.nominated_node_name != current.status.nominated_node_name:
            self._state.put(msgspec.structs.replace(current, status=status))
        elif status != current.status:
            self._state.note(msgspec.structs.replace(current, status=status))

    async def patch_pod_metadata(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Merge labels and annotations into the pod. Raises: PodGoneError."""
        current = self._current(pod)
        metadata = msgspec.structs.replace(
            current.metadata,
            labels={**current.labels, **(patch.get("labels") or {})},
            annotations={**current.metadata.annotations, **(patch.get("annotations") or {})},
        )
        self._state.put(msgspec.structs.replace(current, metadata=metadata))

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod at once; the budgets that cover it allow one disruption less from now on.

        Raises: PodGoneError.
        """
        current = self._current(pod)
        for budget in self._state.all(PodDisruptionBudget):
            if budget.namespace != pod.namespace or not _covers(budget, pod):
                continue
            left = max(0, budget.status.disruptions_allowed - 1)
            self._state.put(
                msgspec.structs.replace(
                    budget, status=msgspec.structs.replace(budget.status, disruptions_allowed=left)
                )
            )
        self._state.remove(current)

    def _current(self, pod: Pod) -> Pod:
        current = self._state.get(Pod, pod.key)
        if current is None or current.uid != pod.uid:
            raise PodGoneError(f'pods "{pod.key}" not found')
        return current


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    try:
        return compile_selector(budget.spec.selector).matches(pod.labels)
    except InvalidSelectorError:
        return False


class VolumesInMemory:
    """Implements berth.framework.handle.VolumeWriter, and acts as the volume controller."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    async def keep_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Reserve the volume for its claim, and bind the claim to it."""
        stored = self._state.put(volume)
        reference = volume.spec.claim_ref
        claim = reference and self._state.get(
            PersistentVolumeClaim, f"{reference.namespace}/{reference.name}"
        )
        if claim:
            self._bind(claim, stored)
        return stored

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Provision a volume for the claim, accessible from the node."""
        stored = self._state.put(claim)
        node = self._state.get(Node, claim.metadata.annotations.get(SELECTED_NODE, ""))
        volume = self._state.put(self._made_for(stored, node))
        self._bind(stored, volume)
        return stored

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        self._state.put(
            msgspec.structs.replace(
                claim,
                metadata=msgspec.structs.replace(claim.metadata, annotations=annotations),
                spec=msgspec.structs.replace(claim.spec, volume_name=volume.name),
                status=StoragePhase(BOUND),
            )
        )

    def _made_for(self, claim: PersistentVolumeClaim, node: Node | None) -> PersistentVolume:
        name = f"simulated-{claim.namespace}-{claim.name}"
        storage_class = self._state.get(StorageClass, claim.storage_class)
        driver = storage_class.provisioner if storage_class else ""
        spec = PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity=claim.spec.resources.requests,
            storage_class_name=claim.storage_class,
            volume_mode=claim.spec.volume_mode,
            claim_ref=ClaimReference("PersistentVolumeClaim", "v1", claim.namespace, claim.name, claim.uid),
            csi=CSIVolumeSource(driver, name),
            node_affinity=_reach(node),
        )
        return PersistentVolume(
            metadata=ObjectMeta(name=name, uid=name), spec=spec, status=StoragePhase(AVAILABLE)
        )


def _reach(node: Node | None) -> VolumeNodeAffinity | None:
    """The nodes that can access the volume: those in the node's zone, or all where it has none."""
    zone = node and node.labels.get(ZONE)
    if not zone:
        return None
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]}
    return VolumeNodeAffinity(msgspec.convert(terms, NodeSelector))


class ClaimsInMemory:
    """Implements berth.framework.ports.claim_writing.ClaimWriter."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._made = 0

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Create the claim with a generated name."""
        self._made += 1
        name = f"{generate_name}{self._made}"
        metadata = msgspec.structs.replace(claim.metadata, name=name, uid=f"{claim.namespace}/{name}")
        return self._state.put(ResourceClaim(metadata=metadata, spec=claim.spec))

    async def reserve(
        self, claim: ResourceClaim, consumer: Consumer, allocation: Allocation | None
    ) -> ResourceClaim:
        """Add the consumer, with its allocation if the claim has none yet. Raises: ClaimWriteError."""
        current = self._current(claim)
        if (allocation is None) == (current.allocation is None):
            raise ClaimWriteError(f"claim {claim.key} is not what it was taken for")
        status = current.status
        others = tuple(c for c in status.reserved_for if c.uid != consumer.uid)
        status = msgspec.structs.replace(
            status, reserved_for=(*others, consumer), allocation=allocation or status.allocation
        )
        return self._state.put(msgspec.structs.replace(current, status=status))

    async def unreserve(self, claim: ResourceClaim, consumer: Consumer) -> ResourceClaim:
        """Remove the consumer. Raises: ClaimWriteError."""
        current = self._current(claim)
        kept = tuple(c for c in current.status.reserved_for if c.uid != consumer.uid)
        return self._state.put(
            msgspec.structs.replace(
                current, status=msgspec.structs.replace(current.status, reserved_for=kept)
            )
        )

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Remove the claim's allocation. Raises: ClaimWriteError."""
        current = self._current(claim)
        status = msgspec.structs.replace(current.status, allocation=None, reserved_for=(), devices=())
        return self._state.put(msgspec.structs.replace(current, status=status))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete the claim, if it still exists."""
        self._state.remove(claim)

    async def publish(self, pod: Pod, claim_name: str, mappings: Sequence[Mapping[str, Any]]) -> None:
        """Set in the pod's status which claim provides its extended resources."""
        current = self._state.get(Pod, pod.key)
        if current is None or current.uid != pod.uid:
            raise ClaimWriteError(f'pods "{pod.key}" not found')
        published = {"resourceClaimName": claim_name, "requestMappings": list(mappings)}
        status = msgspec.structs.replace(current.status, extended_resource_claim_status=published)
        self._state.put(msgspec.structs.replace(current, status=status))

    def _current(self, claim: ResourceClaim) -> ResourceClaim:
        current = self._state.get(ResourceClaim, claim.key)
        if current is None or current.uid != claim.uid:
            raise ClaimWriteError(f"claim {claim.key} is gone")
        return current


class PodGroupsInMemory:
    """Implements berth.framework.ports.pod_group_writing.PodGroupWriter."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    async def write_condition(self, group: AnyGroup, condition: PodGroupCondition) -> None:
        """Set the group's condition, if the group still exists."""
        current = self._state.get(type(group), group.key)
        if current is None or current.uid != group.uid:
            return
        others = tuple(c for c in current.status.conditions if c.type != condition.type)
        status = msgspec.structs.replace(current.status, conditions=(*others, condition))
        self._state.note(msgspec.structs.replace(current, status=status))
