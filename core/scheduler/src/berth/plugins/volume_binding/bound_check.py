"""Whether the claims of a pod on its way to a node are bound, or whether that will not happen any more.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go checkBindings (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec

from berth.framework.handle import Handle
from berth.objects.node import Node
from berth.objects.node_selector import NodeSelectorTerm
from berth.objects.pods.pod import Pod
from berth.objects.volumes.csi_migration import persistent_migration, translated_affinity
from berth.objects.volumes.storage import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeNodeAffinity,
)
from berth.snapshot.node_matching import node_matches_term, parses


class BindingFailedError(Exception):
    """The claims cannot be bound; the text is upstream's."""


class BoundCheck(msgspec.Struct, frozen=True):
    """What was written for one pod, compared with what the watches tell."""

    handle: Handle
    pod: Pod
    node_name: str
    bindings: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]]
    provisions: Sequence[PersistentVolumeClaim]

    def done(self) -> bool:
        """Whether every claim is bound.

        Raises: BindingFailedError where one of them is not going to be.
        """
        row = self.handle.snapshot.row_of.get(self.node_name)
        if row is None:
            raise BindingFailedError(f'failed to get node "{self.node_name}": node not found')
        if self.handle.known(self.pod) is None:
            raise BindingFailedError(f'pod does not exist any more: pod "{self.pod.name}" not found')
        node = self.handle.snapshot.nodes[row]
        return all(self._bound(*binding, node) for binding in self.bindings) and all(
            self._provisioned(claim, node) for claim in self.provisions
        )

    def _bound(self, written: PersistentVolume, claim: PersistentVolumeClaim, node: Node) -> bool:
        volume = self.handle.listers.persistent_volumes.get(written.name)
        if volume is None:
            raise BindingFailedError(f'failed to check binding: persistentvolume "{written.name}" not found')
        now = self._claim(claim, "failed to check binding")
        if is_newer(written, volume):
            return False
        self._check_reach(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailedError(f'ClaimRef got reset for pv "{volume.name}"')
        return now.bound

    def _provisioned(self, written: PersistentVolumeClaim, node: Node) -> bool:
        claim = self._claim(written, "failed to check provisioning pvc")
        if is_newer(written, claim):
            return False
        if not claim.metadata.annotations:
            raise BindingFailedError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE, "") != self.node_name:
            raise BindingFailedError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self.handle.listers.persistent_volumes.get(claim.spec.volume_name)
            if volume is None:
                return False
            self._check_reach(volume, node)
        return claim.bound

    def _claim(self, claim: PersistentVolumeClaim, failure: str) -> PersistentVolumeClaim:
        now = self.handle.listers.persistent_volume_claims.get(claim.name, claim.namespace)
        if now is None:
            raise BindingFailedError(f'{failure}: persistentvolumeclaim "{claim.name}" not found')
        return now

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        if not reaches(self._affinity(volume, node), node):
            raise BindingFailedError(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": '
                "no matching NodeSelectorTerms"
            )

    def _affinity(self, volume: PersistentVolume, node: Node) -> VolumeNodeAffinity | None:
        csi_node, found = self.handle.listers.csi_nodes.get(node.name), persistent_migration(volume)
        if csi_node is None or found is None or found[0].plugin not in csi_node.migrated_plugins:
            return volume.spec.node_affinity
        return translated_affinity(volume, found[0])


def reaches(affinity: VolumeNodeAffinity | None, node: Node) -> bool:
    """Whether a volume's node affinity allows the node, asked about labels alone."""
    required = affinity.required if affinity else None
    if required is None:
        return True
    return any(
        node_matches_term(node, NodeSelectorTerm(term.match_expressions))
        for term in required.node_selector_terms
        if not term.empty and parses(term)
    )


def is_newer(written: PersistentVolume | PersistentVolumeClaim, seen: object) -> bool:
    """Whether the watch has yet to bring what was written."""
    assert isinstance(seen, PersistentVolume | PersistentVolumeClaim)
    return _version(written.metadata.resource_version) > _version(seen.metadata.resource_version)


def _version(text: str) -> int:
    return int(text) if text.isdigit() else 0
