"""Tolerations against taints, as several plugins ask.

Source: spec/plugins.md 4.6.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import numpy as np

from berth.framework.handle import Handle
from berth.objects.node import Node
from berth.objects.taint import Taint, TaintEffect, Toleration
from berth.snapshot.columns import Ints, Mask
from berth.snapshot.snapshot import Snapshot

COMPARISONS_GATE = "TaintTolerationComparisonOperators"
HARD: AbstractSet[str] = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})
SOFT: AbstractSet[str] = frozenset({TaintEffect.PREFER_NO_SCHEDULE})


class Tolerance:
    """Whether tolerations cover taints, under the profile's feature gates."""

    def __init__(self, handle: Handle) -> None:
        self.comparisons = handle.feature_enabled(COMPARISONS_GATE)

    def tolerated(self, tolerations: Iterable[Toleration], taint: Taint) -> bool:
        """Whether some toleration covers the taint."""
        return any(t.tolerates(taint, comparisons=self.comparisons) for t in tolerations)

    def has_untolerated(self, tolerations: tuple[Toleration, ...], node: Node) -> bool:
        """Whether the node keeps pods with these tolerations away."""
        return any(t.effect in HARD and not self.tolerated(tolerations, t) for t in node.spec.taints)

    def kept_away(self, tolerations: tuple[Toleration, ...], nodes: Snapshot) -> Mask:
        """Which nodes keep pods with these tolerations away, worked out once while nodes stay as they are.

        Shapes: result bool (n,).
        """
        return nodes.answer(
            ("kept away", tolerations, self.comparisons), lambda table: self._kept_away(tolerations, table)
        )

    def _kept_away(self, tolerations: tuple[Toleration, ...], nodes: Snapshot) -> Mask:
        bare = self._bare(tolerations, nodes, HARD)
        if not bare:
            return np.zeros(len(nodes), dtype=bool)
        away: Mask = np.logical_or.reduce(nodes.has_taint[bare])
        return away

    def soft_count(self, tolerations: tuple[Toleration, ...], nodes: Snapshot) -> Ints:
        """How many soft taints of each node are not tolerated, worked out once as above.

        Shapes: result int64 (n,).
        """
        return nodes.answer(
            ("soft taints", tolerations, self.comparisons), lambda table: self._soft_count(tolerations, table)
        )

    def _soft_count(self, tolerations: tuple[Toleration, ...], nodes: Snapshot) -> Ints:
        bare = self._bare(tolerations, nodes, SOFT)
        counts: Ints = nodes.has_taint[bare].sum(axis=0, dtype=np.int64)
        return counts

    def _bare(
        self, tolerations: tuple[Toleration, ...], nodes: Snapshot, effects: AbstractSet[str]
    ) -> list[int]:
        return [
            i
            for i, taint in enumerate(nodes.taints)
            if taint.effect in effects and not self.tolerated(tolerations, taint)
        ]
