"""What becomes of a pod's claims on each node: the Filter step, for all nodes at once.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go FindPodVolumes (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.framework.mirrors.listers import Listers
from berth.objects.steps import Steps
from berth.objects.volumes.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding.candidates import VolumeCandidates
from berth.plugins.volume_binding.matching import NONE, Match, match
from berth.plugins.volume_binding.node_places import MigratedPlugins, NodePlaces
from berth.plugins.volume_binding.pod_claims import PodVolumeClaims
from berth.plugins.volume_binding.provisioning import Provision, Provisioner
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

OUT_OF_REACH, NO_VOLUME, NO_STORAGE, NO_SUCH_VOLUME = 1, 2, 4, 8


class NodeVolumes(msgspec.Struct, frozen=True):
    """What the pod would get on one node: free volumes for some claims, new ones for others."""

    static: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    provisions: tuple[PersistentVolumeClaim, ...]


class FoundVolumes(msgspec.Struct, frozen=True):
    """What the pod would get on every node.

    Shapes: problems uint8 (n,), the sum of what is wrong, 0 where all claims can be served.
    """

    problems: NDArray[np.uint8]
    matches: Sequence[Match] = ()
    provisions: Sequence[Provision] = ()

    def on(self, row: int) -> NodeVolumes:
        """What the pod would get on the node of that row."""
        pairs = ((m.claim, m.on(row)) for m in self.matches)
        return NodeVolumes(
            tuple((claim, volume) for claim, volume in pairs if volume is not None),
            tuple(p.claim for p in self.provisions if p.wanted[row]),
        )


class VolumeFinder:
    """Finds volumes for one pod after another."""

    def __init__(self, listers: Listers) -> None:
        self._volumes = listers.assumed_volumes
        self._candidates = VolumeCandidates(listers.persistent_volumes, listers.assumed_volumes)
        self._listers = listers
        self._migrated = MigratedPlugins(listers.csi_nodes)
        self._places: NodePlaces | None = None

    def find(self, claims: PodVolumeClaims, nodes: Snapshot) -> Steps[FoundVolumes]:
        """The answer over the whole snapshot, in steps between which the snapshot stays as it is.

        Raises: PluginError, InvalidSelectorError where a claim cannot be judged.
        """
        if self._places is None or not self._places.hold_for(nodes):
            self._places = NodePlaces(nodes, self._migrated)
        places = self._places
        problems = yield from self._bound(claims.bound, len(nodes), places)
        wanted, selected, others = self._selected(claims.delayed, nodes)
        problems[~wanted] |= NO_VOLUME
        matches = yield from self._match(others, wanted, places)
        to_make = [(claim, wanted) for claim in selected]
        to_make += [(m.claim, wanted & (m.chosen == NONE)) for m in matches]
        provisioner = Provisioner(self._listers, places)
        return FoundVolumes(
            problems, matches, (yield from _provision(provisioner, to_make, wanted, problems))
        )

    def _bound(
        self, claims: Sequence[PersistentVolumeClaim], n: int, places: NodePlaces
    ) -> Steps[NDArray[np.uint8]]:
        problems = np.zeros(n, dtype=np.uint8)
        for claim in claims:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                problems[problems == 0] = NO_SUCH_VOLUME
                break
            beyond = np.ones(n, dtype=bool)
            beyond[(yield from places.reach_migrated(volume))] = False
            problems[beyond & (problems == 0)] = OUT_OF_REACH
            yield
        return problems

    def _selected(
        self, claims: Sequence[PersistentVolumeClaim], nodes: Snapshot
    ) -> tuple[Mask, list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
        """Where no claim has another node selected, the claims with a node selected, and those without."""
        wanted = np.ones(len(nodes), dtype=bool)
        selected, others = [], []
        for claim in claims:
            name = claim.metadata.annotations.get(SELECTED_NODE)
            if name is None:
                others.append(claim)
                continue
            selected.append(claim)
            row, here = nodes.row_of.get(name), np.zeros(len(nodes), dtype=bool)
            if row is not None:
                here[row] = True
            wanted &= here
        return wanted, selected, others

    def _match(
        self, claims: list[PersistentVolumeClaim], wanted: Mask, places: NodePlaces
    ) -> Steps[list[Match]]:
        classes = {claim.storage_class for claim in claims}
        pools = {name: self._candidates.pool(name, claims) for name in classes}
        matches: list[Match] = []
        for claim in sorted(claims, key=lambda claim: claim.requested_nanos):
            matches.append((yield from match(claim, pools[claim.storage_class], wanted, matches, places)))
            yield
        return matches


def _provision(
    provisioner: Provisioner,
    to_make: Sequence[tuple[PersistentVolumeClaim, Mask]],
    wanted: Mask,
    problems: NDArray[np.uint8],
) -> Steps[list[Provision]]:
    """Judge new volumes in order, the first failure ending it on a node; adds to `problems`."""
    made: list[Provision] = []
    going = wanted.copy()
    for claim, where in to_make:
        here = where & going
        if not here.any():
            continue
        makes = yield from provisioner.makes(claim, here.size)
        room, left = yield from provisioner.room(claim, here.size)
        problems[here & ~makes] |= NO_VOLUME
        problems[here & makes & ~room] |= NO_STORAGE
        going &= ~here | (makes & room)
        made.append(Provision(claim, where, left))
        yield
    return made
