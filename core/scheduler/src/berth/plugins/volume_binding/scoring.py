"""Scores by how full volumes, or the storage left for them, would be (feature gate StorageCapacityScoring).

Source: pkg/scheduler/framework/plugins/volumebinding/scorer.go (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from berth.config.plugin_args import UtilizationShapePoint
from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import broken_linear, round_half_away
from berth.objects.quantity import MAX_INT64, whole
from berth.plugins.resource_shares import Offer, percents
from berth.plugins.volume_binding.finding import FoundVolumes
from berth.plugins.volume_binding.matching import NONE, Match
from berth.plugins.volume_binding.provisioning import UNKNOWN, Provision
from berth.snapshot.columns.growing import Ints, Mask

MAX_UTILIZATION = 100
MAX_SHAPE_SCORE = 10
DEFAULT_SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class ClassUse(msgspec.Struct):
    """What is asked of a class and what it has, on each node where it counts.

    Shapes: requested, capacity int64 (n,), bytes; counts bool (n,).
    """

    requested: Ints
    capacity: Ints
    counts: Mask


class CapacityScorer:
    """A broken line over the use of storage in percent, averaged over classes."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        points = [(p.utilization, p.score * MAX_NODE_SCORE // MAX_SHAPE_SCORE) for p in shape]
        at = range(MAX_UTILIZATION + 1)
        self._at = np.array([broken_linear(points, percent) for percent in at], dtype=np.int64)

    def scores(self, found: FoundVolumes) -> Scores:
        """Free volumes count where a node has any, new ones on the others; nodes without either get 0.

        Shapes: result int64 (n,).
        """
        n = found.problems.size
        static = np.zeros(n, dtype=bool)
        for match in found.matches:
            static |= match.chosen != NONE
        uses: dict[str, ClassUse] = {}
        for match in found.matches:
            _add_volumes(_use(uses, match.claim.storage_class, n), match)
        for provision in found.provisions:
            _add_new(_use(uses, provision.claim.storage_class, n), provision, ~static)
        total, classes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        for use in uses.values():
            total += np.where(use.counts, self._of(use), 0)
            classes += use.counts
        mean: Scores = round_half_away(total / np.maximum(classes, 1))
        return mean

    def _of(self, use: ClassUse) -> Scores:
        capacity = Offer(use.capacity, np.maximum(use.capacity, 1))
        percent = percents(np.minimum(use.requested, use.capacity), capacity)
        full = (use.capacity == 0) | (use.requested > use.capacity)
        scores: Scores = self._at[np.where(full, MAX_UTILIZATION, percent)]
        return scores


def _use(uses: dict[str, ClassUse], storage_class: str, n: int) -> ClassUse:
    if storage_class not in uses:
        uses[storage_class] = ClassUse(
            np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
        )
    return uses[storage_class]


def _add_volumes(use: ClassUse, match: Match) -> None:
    has = match.chosen != NONE
    distinct, which = np.unique(match.chosen[has], return_inverse=True)
    sizes = np.array([whole(match.pool[int(index)].capacity) for index in distinct], dtype=np.int64)
    _add(use.requested, has, whole(match.claim.requested_nanos))
    _add(use.capacity, has, sizes[which])
    use.counts |= has


def _add(sums: Ints, where: Mask, amounts: int | Ints) -> None:
    """Add up, but not beyond what 64 bits hold."""
    sums[where] = np.minimum(sums[where], MAX_INT64 - amounts) + amounts


def _add_new(use: ClassUse, provision: Provision, without_static: Mask) -> None:
    known = provision.wanted & without_static & (provision.capacity != UNKNOWN)
    _add(use.requested, known, whole(provision.claim.requested_nanos))
    use.capacity[known] = provision.capacity[known]
    use.counts |= known
