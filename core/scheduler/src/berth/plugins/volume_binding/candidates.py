"""Volumes in question for claims that wait: free ones by class, smallest first, and those kept for a claim.

Volumes that are bound to other claims, most of them in most clusters, are not looked at in a cycle.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from berth.framework.mirrors.listers import AssumeCache, Store
from berth.objects.steps import Steps
from berth.objects.volumes.storage import (
    AVAILABLE,
    FILESYSTEM,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)
from berth.plugins.volume_binding.node_places import NodePlaces
from berth.snapshot.columns.growing import Ints, Mask, Rows


class VolumeCandidate:
    """A volume with what is asked of it worked out once."""

    __slots__ = ("_at", "_rows", "available", "capacity", "form", "modes", "volume")

    def __init__(self, volume: PersistentVolume) -> None:
        spec = volume.spec
        self.volume = volume
        self.capacity = volume.capacity_nanos
        self.form = form_of(spec)
        self.modes = frozenset(spec.access_modes)
        self.available = (
            spec.claim_ref is None
            and volume.status.phase == AVAILABLE
            and volume.metadata.deletion_timestamp is None
        )
        self._rows: Rows | None = None
        self._at: object = None

    def rows(self, places: NodePlaces) -> Steps[Rows]:
        """The nodes that the volume reaches."""
        if self._at is places and self._rows is not None:
            return self._rows
        self._rows = yield from places.reach(self.volume)
        self._at = places
        return self._rows

    def serves(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume is kept for the claim and of use to it."""
        return (
            self.volume.kept_for(claim)
            and self.capacity >= claim.requested_nanos
            and self.form == form_of(claim.spec)
            and self.volume.metadata.deletion_timestamp is None
        )


def form_of(spec: PersistentVolumeSpec | PersistentVolumeClaimSpec) -> tuple[str, str]:
    """The mode and the attributes class, in which a claim and its volume have to agree."""
    return spec.volume_mode or FILESYSTEM, spec.volume_attributes_class_name or ""


class FreeVolumes:
    """The free volumes of one class, smallest first, and what is asked of them as columns.

    Shapes: available bool (v,); kind intp (v,), an index into `kinds`, which are (form, access modes).
    """

    def __init__(self, candidates: Iterable[VolumeCandidate]) -> None:
        self.candidates = sorted(candidates, key=lambda c: c.capacity)
        self.index = {c.volume.name: i for i, c in enumerate(self.candidates)}
        self._capacities = [c.capacity for c in self.candidates]
        self._available: Mask = np.array([c.available for c in self.candidates], dtype=bool)
        numbers: dict[tuple[tuple[str, str], frozenset[str]], int] = {}
        kind = [numbers.setdefault((c.form, c.modes), len(numbers)) for c in self.candidates]
        self._kinds, self._kind = list(numbers), np.array(kind, dtype=np.intp)
        self._pairs: tuple[Rows, Ints] | None = None
        self._at: object = None

    def __len__(self) -> int:
        return len(self.candidates)

    def usable(self, claim: PersistentVolumeClaim) -> Mask:
        """Which of the volumes would do for the claim, selectors and nodes aside.

        Shapes: result bool (v,).
        """
        form, modes = form_of(claim.spec), frozenset(claim.spec.access_modes)
        will_do = np.array([form == f and modes <= m for f, m in self._kinds], dtype=bool)
        mask: Mask = self._available & will_do[self._kind] if len(self) else self._available.copy()
        mask[: bisect_left(self._capacities, claim.requested_nanos)] = False
        return mask

    def pairs(self, places: NodePlaces, at_most: int) -> Steps[tuple[Rows, Ints] | None]:
        """Each volume with each node that it reaches, volume by volume; None where there are too many.

        Shapes: rows, indices (k,).
        """
        if self._at is places:
            return self._pairs
        pairs, reached, size = None, list[Rows](), 0
        for candidate in self.candidates:
            reached.append((yield from candidate.rows(places)))
            size += reached[-1].size
            if size > at_most:
                break
            yield
        else:
            pairs = side_by_side(reached, range(len(reached)))
        self._at, self._pairs = places, pairs
        return pairs


def side_by_side(reached: Sequence[Rows], indices: Sequence[int]) -> tuple[Rows, Ints]:
    """The rows of all, and beside each row the index that it belongs to.

    Shapes: results (k,).
    """
    if not reached:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
    sizes = [rows.size for rows in reached]
    return np.concatenate(reached), np.repeat(np.array(indices, dtype=np.int64), sizes)


class VolumePool(msgspec.Struct, frozen=True):
    """The volumes of one class that some claims choose from: free ones by size, then kept ones.

    `taken` are the free ones that are assumed to be taken.
    """

    free: FreeVolumes
    kept: Sequence[VolumeCandidate]
    taken: Sequence[int] = ()

    def __getitem__(self, index: int) -> VolumeCandidate:
        free = self.free.candidates
        return free[index] if index < len(free) else self.kept[index - len(free)]


class VolumeCandidates:
    """Volumes by class and by the claim that they are kept for, as the watch and other pods leave them."""

    def __init__(self, volumes: Store[PersistentVolume], assumed: AssumeCache[PersistentVolume]) -> None:
        self._volumes = volumes
        self._assumed = assumed
        self._position = 0
        self._known: dict[str, VolumeCandidate] = {}
        self._free: dict[str, dict[str, VolumeCandidate]] = {}
        self._ordered: dict[str, FreeVolumes] = {}
        self._kept: dict[str, dict[str, VolumeCandidate]] = {}

    def pool(self, storage_class: str, claims: Iterable[PersistentVolumeClaim]) -> VolumePool:
        """What claims of that class choose from."""
        self._follow()
        free = self._in_order(storage_class)
        kept: dict[str, VolumeCandidate] = {}
        for claim in claims:
            kept |= self._kept.get(claim.key, {})
        taken = {volume.name: VolumeCandidate(volume) for volume in self._assumed.assumed()}
        return VolumePool(
            free,
            [c for c in (kept | taken).values() if c.volume.storage_class == storage_class],
            [free.index[name] for name in taken if name in free.index],
        )

    def _in_order(self, storage_class: str) -> FreeVolumes:
        ordered = self._ordered.get(storage_class)
        if ordered is None:
            free = self._free.get(storage_class, {}).values()
            ordered = self._ordered[storage_class] = FreeVolumes(free)
        return ordered

    def _follow(self) -> None:
        changed = self._volumes.changes.since(self._position)
        self._position = self._volumes.changes.end
        if changed is None:
            changed = [*self._known, *(volume.name for volume in self._volumes)]
        for name in dict.fromkeys(changed):
            self._drop(name)
            volume = self._volumes.get(name)
            if volume is not None:
                self._add(volume)

    def _add(self, volume: PersistentVolume) -> None:
        candidate = self._known[volume.name] = VolumeCandidate(volume)
        self._place(candidate)[volume.name] = candidate
        self._ordered.pop(volume.storage_class, None)

    def _drop(self, name: str) -> None:
        candidate = self._known.pop(name, None)
        if candidate is not None:
            self._place(candidate).pop(name, None)
            self._ordered.pop(candidate.volume.storage_class, None)

    def _place(self, candidate: VolumeCandidate) -> dict[str, VolumeCandidate]:
        reference = candidate.volume.spec.claim_ref
        if reference is None:
            return self._free.setdefault(candidate.volume.storage_class, {})
        return self._kept.setdefault(f"{reference.namespace}/{reference.name}", {})
