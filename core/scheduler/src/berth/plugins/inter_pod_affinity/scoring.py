"""Adding up preferences: the incoming pod's, and those of placed pods that mean it."""

from collections.abc import Callable, Mapping

import numpy as np

from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import TABLED
from berth.objects.steps import Steps
from berth.plugins.inter_pod_affinity.terms import TermTargets
from berth.plugins.topology import Domains, count_in, holders_in, on_nodes, topology
from berth.snapshot.affinity_terms import TermKind
from berth.snapshot.columns.growing import Rows
from berth.snapshot.placed.placed_pods import PodQuery
from berth.snapshot.placed.term_holders import About
from berth.snapshot.snapshot import Snapshot


class Preferences:
    """The sum of weights by topology key and domain."""

    __slots__ = ("_sums", "any")

    def __init__(self) -> None:
        self._sums: dict[str, Domains] = {}
        self.any = False
        """Whether some pod counted anywhere, be it that its weights cancel out."""

    def add_own(self, preferred: Mapping[TermTargets, int], nodes: Snapshot) -> Steps[None]:
        """Count the pods that terms of the incoming pod mean, in steps."""
        for term, weight in preferred.items():
            key = term.topology_key
            if key in nodes.label_keys:
                pods = count_in(nodes, key, PodQuery((term.like,)))
                self._add(key, pods, pods * weight)
            yield

    def add_held(self, about: About, hard_weight: int, nodes: Snapshot) -> Steps[None]:
        """Count the placed pods that hold terms which mean the incoming pod, in steps."""
        for key, counting in about.items():
            weights = {held: weight * _sign(held.kind, hard_weight) for held, weight in counting.items()}
            weights = {held: weight for held, weight in weights.items() if weight}
            if weights:
                self._add(key, *holders_in(nodes, key, weights))
                yield

    def _add(self, key: str, pods: Domains, sums: Domains) -> None:
        if not pods.max():
            return
        self.any = True
        self._sums[key] = self._sums[key] + sums if key in self._sums else sums

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


def _sign(kind: TermKind, hard_weight: int) -> int:
    """What a term of that kind counts for each 1 of its weight."""
    match kind:
        case TermKind.REQUIRED_AFFINITY:
            return hard_weight
        case TermKind.REQUIRED_ANTI_AFFINITY:
            return 0
        case TermKind.PREFERRED_AFFINITY:
            return 1
        case _:
            return -1


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
