"""Adding up preferences: the incoming pod's, and those of placed pods that mean it."""

from collections.abc import Callable

import numpy as np

from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import TABLED
from berth.plugins.inter_pod_affinity.terms import Wanted
from berth.plugins.topology import Domains, count_in, holders_in, on_nodes, topology
from berth.snapshot.affinity_terms import HeldTerm, TermKind
from berth.snapshot.columns import Rows
from berth.snapshot.placed_pods import PodQuery
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
        key = term.topology_key
        self._add(key, count_in(nodes, key, PodQuery((term.like,))), term.weight)

    def add_held(self, held: HeldTerm, hard_weight: int, nodes: Snapshot) -> None:
        """Count the placed pods that hold a term which means the incoming pod."""
        weight = {
            TermKind.REQUIRED_AFFINITY: hard_weight,
            TermKind.PREFERRED_AFFINITY: held.weight,
            TermKind.PREFERRED_ANTI_AFFINITY: -held.weight,
        }.get(held.kind, 0)
        if weight:
            key = held.term.topology_key
            self._add(key, holders_in(nodes, key, held), weight)

    def _add(self, key: str, domains: Domains, weight: int) -> None:
        if not domains.max():
            return
        self.any = True
        domains *= weight
        self._sums[key] = self._sums[key] + domains if key in self._sums else domains

    def scores(self, nodes: Snapshot) -> Scores:
        """The sum over the domains that each node is in; may be negative.

        Shapes: result int64 (n,).
        """
        total: Scores | None = None
        for key, domains in self._sums.items():
            here = on_nodes(nodes, key, domains)
            total = here if total is None else total + here
        return np.zeros(len(nodes), dtype=np.int64) if total is None else total

    def score_at(self, nodes: Snapshot) -> Callable[[int], int]:
        """The same of one row, by its number in the whole snapshot."""
        by_place = [(topology(nodes, key).places, domains) for key, domains in self._sums.items()]
        return lambda row: sum(domains.item(places_of.item(row)) for places_of, domains in by_place)

    def scores_on(self, nodes: Snapshot) -> Callable[[Rows], Scores]:
        """The same of some rows."""
        by_place = [(topology(nodes, key).places, domains) for key, domains in self._sums.items()]

        def scores(rows: Rows) -> Scores:
            total = np.zeros(rows.size, dtype=np.int64)
            for places_of, domains in by_place:
                total += domains.take(places_of.take(rows))
            return total

        return scores


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
    above = scores - lowest
    if highest - lowest <= TABLED:
        return _stretched(np.arange(highest - lowest + 1), highest - lowest).take(above)
    return _stretched(above, highest - lowest)


def _stretched(above: Scores, most: int) -> Scores:
    final: Scores = (float(MAX_NODE_SCORE) * (above / most)).astype(np.int64)
    return final
