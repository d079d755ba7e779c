"""Counting for the soft constraints, and the score that comes of it."""

import math

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import round_half_away
from berth.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    Constraint,
    Inclusion,
    pods_counted,
)
from berth.plugins.topology import places, with_all
from berth.snapshot.columns import Ints, Mask
from berth.snapshot.snapshot import Snapshot

Floats = NDArray[np.float64]


class SoftSpread:
    """What soft constraints give each node, over the domains of the nodes that are scored.

    Shapes: ignored bool (k,), the feasible nodes that lack a label which all need to have; they score 0.
    """

    __slots__ = ("_counted", "_inclusion", "_nodes", "_scored", "_total", "ignored")

    def __init__(
        self, inclusion: Inclusion, nodes: Snapshot, feasible: Mask, needed_labels: frozenset[str]
    ) -> None:
        self._inclusion = inclusion
        self._nodes = nodes
        self._counted = with_all(nodes, needed_labels)
        self._scored: Mask = feasible & self._counted
        self.ignored: Mask = ~self._counted[feasible]
        self._total = np.zeros(len(nodes))

    def add(self, constraint: Constraint) -> None:
        """Add what a constraint gives: its domain's pods, weighed; nothing where a node lacks the label."""
        nodes, key = self._nodes, constraint.topology_key
        pods = pods_counted(nodes, self._inclusion.pod, constraint.selector)
        size, here = self._by_node(pods) if key == HOSTNAME else self._by_domain(pods, constraint)
        part = here * math.log(size + 2)
        part += float(constraint.max_skew - 1)
        part *= places(nodes, key) > 0
        self._total += part

    def _by_node(self, pods: Ints) -> tuple[int, Floats]:
        """Every scored node is a domain of its own, whatever its hostname label says."""
        return int(np.count_nonzero(self._scored)), pods.astype(np.float64)

    def _by_domain(self, pods: Ints, constraint: Constraint) -> tuple[int, Floats]:
        """How many domains the scored nodes have, and the pods in each node's domain."""
        key = constraint.topology_key
        width = len(self._nodes.label(key).values) + 1
        where = _places_by_text(self._nodes, key)
        known = np.bincount(where[self._scored], minlength=width) > 0
        included = self._inclusion.mask(self._nodes, constraint)
        counting = self._counted if included is None else self._counted & included
        pods_in = np.bincount(where, weights=pods * counting, minlength=width).astype(np.float64)
        pods_in *= known
        return int(np.count_nonzero(known)), pods_in[where]

    def scores(self) -> Scores:
        """The sums, rounded once.

        Shapes: result int64 (n,).
        """
        return round_half_away(self._total * self._counted)


def _places_by_text(nodes: Snapshot, key: str) -> Ints:
    """The nodes' places, those without the label among those whose value is empty: upstream mixes both."""
    where, empty = places(nodes, key), nodes.label(key).index.get("")
    return where if empty is None else np.where(where == 0, empty + 1, where)


def normalized(scores: Scores, ignored: Mask) -> Scores:
    """The fewer pods, the better: the lowest score comes out highest, ignored nodes at 0.

    Shapes: all (k,).
    """
    kept = scores[~ignored]
    lowest, highest = int(kept.min(initial=2**63 - 1)), int(kept.max(initial=0))
    if highest == 0:
        final: Scores = np.full(scores.shape, MAX_NODE_SCORE, dtype=np.int64)
    else:
        final = MAX_NODE_SCORE * (highest + lowest - scores) // highest
    final[ignored] = 0
    return final
