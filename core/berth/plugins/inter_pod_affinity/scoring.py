"""Adding up preferences: the incoming pod's, and those of placed pods that mean it."""

import numpy as np

from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.plugins.inter_pod_affinity.terms import Wanted
from berth.plugins.topology import Domains, places, sums
from berth.snapshot.affinity_terms import HeldTerm, TermKind
from berth.snapshot.columns import Ints
from berth.snapshot.placed_pods import Question
from berth.snapshot.snapshot import Snapshot


class Preferences:
    """The sum of weights by topology key and domain."""

    __slots__ = ("_sums", "any")

    def __init__(self) -> None:
        self._sums: dict[str, Domains] = {}
        self.any = False
        """Whether some pod counted anywhere, be it that its weights cancel out."""

    def add_own(self, term: Wanted, nodes: Snapshot) -> None:
        """Count the pods that a term of the incoming pod means."""
        self._add(term.topology_key, nodes.count(Question((term.like,))), term.weight, nodes)

    def add_held(self, held: HeldTerm, hard_weight: int, nodes: Snapshot) -> None:
        """Count the placed pods that hold a term which means the incoming pod."""
        weight = {
            TermKind.REQUIRED_AFFINITY: hard_weight,
            TermKind.PREFERRED_AFFINITY: held.weight,
            TermKind.PREFERRED_ANTI_AFFINITY: -held.weight,
        }.get(held.kind, 0)
        if weight:
            self._add(held.term.topology_key, nodes.holders(held), weight, nodes)

    def _add(self, key: str, pods: Ints, weight: int, nodes: Snapshot) -> None:
        domains = sums(nodes, key, pods)
        if not domains.any():
            return
        self.any = True
        domains *= weight
        self._sums[key] = self._sums[key] + domains if key in self._sums else domains

    def scores(self, nodes: Snapshot) -> Scores:
        """The sum over the domains that each node is in; may be negative.

        Shapes: result int64 (n,).
        """
        total = np.zeros(len(nodes), dtype=np.int64)
        for key, domains in self._sums.items():
            total += domains[places(nodes, key)]
        return total


def normalized(scores: Scores) -> Scores:
    """The lowest at 0, the highest at 100; all at 0 where they are equal.

    The quotient comes first, in float64, as upstream has it: 29 of 50 gives 57, not 58.

    Shapes: scores and result int64 (k,).
    """
    if not scores.size:
        return scores
    lowest, highest = int(scores.min()), int(scores.max())
    if lowest == highest:
        return np.zeros(scores.shape, dtype=np.int64)
    final: Scores = (float(MAX_NODE_SCORE) * ((scores - lowest) / (highest - lowest))).astype(np.int64)
    return final
