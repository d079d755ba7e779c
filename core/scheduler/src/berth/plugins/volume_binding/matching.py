"""From claims to free volumes: for each claim and every node at once, the smallest volume that will do.

Source: component-helpers storage/volume/pv_helpers.go FindMatchingVolume (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from berth.objects.label_selector import EVERYTHING, InvalidSelectorError, compile_selector
from berth.objects.steps import Steps
from berth.objects.volumes.storage import PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding.candidates import VolumePool, side_by_side
from berth.plugins.volume_binding.node_places import NodePlaces
from berth.snapshot.columns.growing import Ints, Mask, Rows

NONE = -1
AT_ONCE = 4
"""How many times as many (node, volume) pairs as there are nodes are looked at in one step."""


class Match(msgspec.Struct, frozen=True):
    """Which volume of the pool the claim would get on each node.

    Shapes: chosen int64 (n,), an index into the pool, NONE where the claim gets none.
    """

    claim: PersistentVolumeClaim
    pool: VolumePool
    chosen: Ints

    def on(self, row: int) -> PersistentVolume | None:
        """The volume on one node."""
        index = int(self.chosen[row])
        return None if index == NONE else self.pool[index].volume


def match(
    claim: PersistentVolumeClaim, pool: VolumePool, wanted: Mask, earlier: Sequence[Match], places: NodePlaces
) -> Steps[Match]:
    """The claim's volume wherever one is wanted, in steps; what earlier claims chose is taken there.

    A volume that is kept for the claim is the only one in question for it. `earlier` are the pod's matches
    so far. Raises: InvalidSelectorError where the claim's selector does not parse.
    """
    choice = _Choice(wanted, [other.chosen for other in earlier if other.pool is pool])
    usable = yield from _usable(claim, pool)
    for index, kept in enumerate(pool.kept, start=len(pool.free)):
        if kept.serves(claim):
            choice.insist(index, (yield from kept.rows(places)))
        yield
    pairs = yield from pool.free.pairs(places, AT_ONCE * wanted.size)
    if pairs is not None:
        rows, indices = pairs
        keep = usable[indices]
        choice.offer(rows[keep], indices[keep])
        return Match(claim, pool, choice.chosen)
    yield from _offer_all(choice, np.flatnonzero(usable).tolist(), pool, places)
    return Match(claim, pool, choice.chosen)


def _usable(claim: PersistentVolumeClaim, pool: VolumePool) -> Steps[Mask]:
    """Which of the pool's free volumes the claim could have.

    Shapes: result bool (v,).
    """
    try:
        selector = EVERYTHING if claim.spec.selector is None else compile_selector(claim.spec.selector)
    except InvalidSelectorError as error:
        raise InvalidSelectorError(f'selector of persistentvolumeclaim "{claim.name}": {error}') from error
    usable = pool.free.usable(claim)
    usable[list(pool.taken)] = False
    if not selector.empty:
        for index in np.flatnonzero(usable).tolist():
            usable[index] = selector.matches(pool[index].volume.labels)
            yield
    return usable


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


def _offer_all(choice: _Choice, order: Sequence[int], pool: VolumePool, places: NodePlaces) -> Steps[None]:
    """Offer pairs of node and volume, volume by volume, not too many at once, while some node is open."""
    reached: list[Rows] = []
    indices: list[int] = []
    size = 0
    for index in order:
        if not choice.open.any():
            return
        reached.append((yield from pool.free.candidates[index].rows(places)))
        indices.append(index)
        size += reached[-1].size
        if size >= AT_ONCE * choice.open.size:
            choice.offer(*side_by_side(reached, indices))
            reached, indices, size = [], [], 0
        yield
    if indices:
        choice.offer(*side_by_side(reached, indices))
