"""Tolerations against taints, as several plugins ask.

Source: component-helpers scheduling/corev1/helpers.go FindMatchingUntoleratedTaint (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from berth.framework.handle import Handle
from berth.objects.node import Node
from berth.objects.taint import Taint, TaintEffect, Toleration
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.snapshot import Snapshot

COMPARISONS_GATE = "TaintTolerationComparisonOperators"
HARD: AbstractSet[str] = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})
EQUAL: AbstractSet[str] = frozenset({"", "Equal"})
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
        return bool(self._bare(tolerations, node.spec.taints, HARD))

    def kept_away(self, tolerations: tuple[Toleration, ...], nodes: Snapshot) -> Mask:
        """Which nodes keep pods with these tolerations away, worked out once while nodes stay as they are.

        Shapes: result bool (n,).
        """
        return nodes.answer(
            ("kept away", tolerations, self.comparisons),
            lambda table: table.with_taint(self._bare(tolerations, table.taints, HARD)),
        )

    def soft_count(self, tolerations: tuple[Toleration, ...], nodes: Snapshot) -> Ints:
        """How many soft taints of each node are not tolerated, worked out once as above.

        Shapes: result int64 (n,).
        """
        return nodes.answer(
            ("soft taints", tolerations, self.comparisons),
            lambda table: table.taint_count(self._bare(tolerations, table.taints, SOFT)),
        )

    def _bare(
        self, tolerations: tuple[Toleration, ...], taints: Iterable[Taint], effects: AbstractSet[str]
    ) -> list[Taint]:
        """The taints of these effects that no toleration covers.

        Cost: one step for each toleration and each taint: a taint is compared with those alone that name its
        key or none, and its value or none, and of these with one for each operator and effect.
        """
        about = _by_key_and_value(tolerations)
        return [
            taint
            for taint in taints
            if taint.effect in effects
            and not (
                (
                    (taint.key, taint.value) in about
                    or (taint.key, None) in about
                    or ("", taint.value) in about
                    or ("", None) in about
                )
                and self._covered(about, taint)
            )
        ]

    def _covered(self, about: "ByKeyAndValue", taint: Taint) -> bool:
        pairs = ((key, value) for key in (taint.key, "") for value in (taint.value, None))
        return any(self.tolerated(about[pair].values(), taint) for pair in pairs if pair in about)


ByKeyAndValue = Mapping[tuple[str, str | None], Mapping[tuple[str, str], Toleration]]
"""By key and value (None where any value will do, or a range of them), and there by operator and effect."""


def _by_key_and_value(tolerations: Iterable[Toleration]) -> ByKeyAndValue:
    """The tolerations without those that others reach beyond."""
    found: dict[tuple[str, str | None], dict[tuple[str, str], Toleration]] = {}
    for toleration in tolerations:
        value = toleration.value if toleration.operator in EQUAL else None
        widest = found.setdefault((toleration.key, value), {})
        kind = toleration.operator, toleration.effect
        if kind not in widest or toleration.reaches_beyond(widest[kind]):
            widest[kind] = toleration
    return found
