"""Volumes in question for claims that wait: free ones by class, smallest first, and those kept for a claim.

Volumes that are bound to other claims, most of them in most clusters, are not looked at in a cycle.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berth.framework.listers import AssumeCache, Store
from berth.objects.storage import (
    AVAILABLE,
    FILESYSTEM,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)
from berth.plugins.volume_binding.node_places import NodePlaces
from berth.snapshot.columns import Rows


class Candidate:
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

    def rows(self, places: NodePlaces) -> Rows:
        """The nodes that the volume reaches."""
        if self._rows is None or self._at is not places.instant:
            self._rows, self._at = places.reach(self.volume), places.instant
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


@dataclass(frozen=True, slots=True)
class Pool:
    """The volumes of one class that some claims choose from: free ones by size, then kept ones."""

    free: Sequence[Candidate]
    kept: Sequence[Candidate]

    def __getitem__(self, index: int) -> Candidate:
        return self.free[index] if index < len(self.free) else self.kept[index - len(self.free)]


class Candidates:
    """Volumes by class and by the claim that they are kept for, as the watch and other pods leave them."""

    def __init__(self, volumes: Store[PersistentVolume], assumed: AssumeCache[PersistentVolume]) -> None:
        self._volumes = volumes
        self._assumed = assumed
        self._position = 0
        self._known: dict[str, Candidate] = {}
        self._free: dict[str, dict[str, Candidate]] = {}
        self._ordered: dict[str, list[Candidate]] = {}
        self._kept: dict[str, dict[str, Candidate]] = {}

    def pool(self, storage_class: str, claims: Iterable[PersistentVolumeClaim]) -> Pool:
        """What claims of that class choose from."""
        self._follow()
        free, kept = self._in_order(storage_class), []
        for claim in claims:
            kept += [
                c for c in self._kept.get(claim.key, {}).values() if c.volume.storage_class == storage_class
            ]
        taken = {
            volume.name: volume for volume in self._assumed.assumed() if volume.storage_class == storage_class
        }
        if taken:
            kept = [c for c in kept if c.volume.name not in taken] + [Candidate(v) for v in taken.values()]
            free = [c for c in free if c.volume.name not in taken]
        return Pool(free, kept)

    def _in_order(self, storage_class: str) -> list[Candidate]:
        ordered = self._ordered.get(storage_class)
        if ordered is None:
            free = self._free.get(storage_class, {}).values()
            ordered = self._ordered[storage_class] = sorted(free, key=lambda c: c.capacity)
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
        candidate = self._known[volume.name] = Candidate(volume)
        self._place(candidate)[volume.name] = candidate
        self._ordered.pop(volume.storage_class, None)

    def _drop(self, name: str) -> None:
        candidate = self._known.pop(name, None)
        if candidate is not None:
            self._place(candidate).pop(name, None)
            self._ordered.pop(candidate.volume.storage_class, None)

    def _place(self, candidate: Candidate) -> dict[str, Candidate]:
        reference = candidate.volume.spec.claim_ref
        if reference is None:
            return self._free.setdefault(candidate.volume.storage_class, {})
        return self._kept.setdefault(f"{reference.namespace}/{reference.name}", {})
