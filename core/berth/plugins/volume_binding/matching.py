"""From claims to free volumes: for each claim and every node at once, the smallest volume that will do.

Source: component-helpers storage/volume FindMatchingVolume (Kubernetes v1.36); spec/plugins.md 5.12.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from berth.framework.listers import AssumeCache, Store
from berth.objects.label_selector import EVERYTHING, Selector, compile_selector
from berth.objects.storage import AVAILABLE, FILESYSTEM, PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding.node_places import NodePlaces
from berth.snapshot.columns import Ints, Mask, Rows

NONE = -1
AT_ONCE = 4
"""How many times as many (node, volume) pairs as there are nodes are looked at in one step."""


class VolumesByClass:
    """The names of the volumes of each class, kept up to date."""

    def __init__(self, volumes: Store[PersistentVolume], assumed: AssumeCache[PersistentVolume]) -> None:
        self._volumes = volumes
        self._assumed = assumed
        self._position = 0
        self._class_of: dict[str, str] = {}
        self._names: dict[str, dict[str, None]] = {}

    def of(self, storage_class: str) -> list[PersistentVolume]:
        """The volumes of the class, as they are assumed to be."""
        self._follow()
        stored = (self._volumes.get(name) for name in self._names.get(storage_class, ()))
        return [self._assumed.latest(volume) for volume in stored if volume is not None]

    def _follow(self) -> None:
        changed = self._volumes.changes.since(self._position)
        self._position = self._volumes.changes.end
        if changed is None:
            self._class_of, self._names = {}, {}
            changed = [volume.name for volume in self._volumes]
        for name in changed:
            self._take(name)

    def _take(self, name: str) -> None:
        volume = self._volumes.get(name)
        before = self._class_of.pop(name, None)
        if volume is not None:
            self._class_of[name] = volume.storage_class
            self._names.setdefault(volume.storage_class, {})[name] = None
        if before is not None and (volume is None or volume.storage_class != before):
            del self._names[before][name]


@dataclass(frozen=True, slots=True)
class Match:
    """Which of these volumes the claim would get on each node.

    Shapes: chosen int64 (n,), an index into `volumes`, NONE where the claim gets none.
    """

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    chosen: Ints

    def on(self, row: int) -> PersistentVolume | None:
        """The volume on one node."""
        index = int(self.chosen[row])
        return None if index == NONE else self.volumes[index]


def match(
    claim: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    wanted: Mask,
    earlier: Sequence[Match],
    places: NodePlaces,
) -> Match:
    """The claim's volume wherever one is wanted; what earlier claims chose on a node is taken there.

    A volume that is kept for the claim is the only one in question for it. `earlier` are choices among the
    same volumes. Raises: InvalidSelectorError where the claim's selector does not parse.
    """
    selector = EVERYTHING if claim.spec.selector is None else compile_selector(claim.spec.selector)
    choice = _Choice(wanted, [other.chosen for other in earlier if other.volumes is volumes])
    suitable = [i for i, volume in enumerate(volumes) if _suits(volume, claim)]
    for i in suitable:
        if volumes[i].kept_for(claim):
            choice.insist(i, places.reach(volumes[i]))
    free = [i for i in suitable if _is_free(volumes[i], claim, selector)]
    free.sort(key=lambda i: volumes[i].capacity_nanos)
    for rows, indices in _in_steps(free, volumes, wanted.size, places):
        if not choice.open.any():
            break
        choice.offer(rows, indices)
    return Match(claim, volumes, choice.chosen)


class _Choice:
    """Choices made so far, and the nodes that are still open."""

    def __init__(self, wanted: Mask, taken: list[Ints]) -> None:
        self.open = wanted.copy()
        self.chosen: Ints = np.full(wanted.size, NONE, dtype=np.int64)
        self._taken = taken

    def insist(self, index: int, rows: Rows) -> None:
        """This volume or none, on every open node where it is not taken."""
        decided = self.open.copy()
        for chosen in self._taken:
            decided &= chosen != index
        reached = rows[decided[rows]]
        self.chosen[reached] = index
        self.open &= ~decided

    def offer(self, rows: Rows, indices: Ints) -> None:
        """Take the first of these volumes on each open node.

        Shapes: rows and indices (k,), pairs in the order of preference.
        """
        possible = self.open[rows]
        for chosen in self._taken:
            possible &= chosen[rows] != indices
        # Of several assignments to one place the last one stands, so the first choice goes last.
        rows, indices = rows[possible][::-1], indices[possible][::-1]
        self.chosen[rows] = indices
        self.open[rows] = False


def _in_steps(
    order: Sequence[int], volumes: Sequence[PersistentVolume], n: int, places: NodePlaces
) -> Iterator[tuple[Rows, Ints]]:
    """Pairs of node and volume, volume by volume, not too many at once."""
    reached: list[Rows] = []
    indices: list[int] = []
    size = 0
    for index in order:
        reached.append(places.reach(volumes[index]))
        indices.append(index)
        size += reached[-1].size
        if size >= AT_ONCE * n:
            yield _pairs(reached, indices)
            reached, indices, size = [], [], 0
    if indices:
        yield _pairs(reached, indices)


def _pairs(reached: list[Rows], indices: list[int]) -> tuple[Rows, Ints]:
    sizes = [rows.size for rows in reached]
    return np.concatenate(reached), np.repeat(np.array(indices, dtype=np.int64), sizes)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim could have the volume, as far as neither nodes nor other volumes matter."""
    offer, wish = volume.spec, claim.spec
    return (
        (offer.claim_ref is None or volume.kept_for(claim))
        and volume.capacity_nanos >= claim.requested_nanos
        and (offer.volume_mode or FILESYSTEM) == (wish.volume_mode or FILESYSTEM)
        and (offer.volume_attributes_class_name or "") == (wish.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    """Whether the volume may be given to the claim without being kept for it."""
    return (
        volume.status.phase == AVAILABLE
        and not volume.kept_for(claim)
        and selector.matches(volume.labels)
        and volume.storage_class == claim.storage_class
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )
