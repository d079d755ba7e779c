"""Counting for the soft constraints, and the score that comes of it."""

import math
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import TABLED, round_half_away
from berth.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    Constraint,
    Inclusion,
    pods_counted,
)
from berth.plugins.topology import count_in, division, labelled, no_domains, on_nodes, places, width, with_all
from berth.snapshot.columns import Ints, Mask, Rows
from berth.snapshot.placed_pods import Division, Question
from berth.snapshot.snapshot import Snapshot

Floats = NDArray[np.float64]


class SoftSpread:
    """What soft constraints give each node, over the domains of the nodes that are scored.

    Shapes: ignored bool (k,), the feasible nodes that lack a label which all need to have; they score 0.
    """

    __slots__ = ("_counted", "_inclusion", "_left_out", "_needed", "_nodes", "_total", "ignored")

    def __init__(
        self, inclusion: Inclusion, nodes: Snapshot, feasible: Mask, needed_labels: frozenset[str]
    ) -> None:
        self._inclusion = inclusion
        self._nodes = nodes
        self._needed = needed_labels
        self._counted = with_all(nodes, needed_labels)
        self._left_out: Rows = np.flatnonzero(~(feasible & self._counted))
        self.ignored: Mask = ~self._counted[feasible]
        self._total: Floats = np.zeros(len(nodes))

    def add(self, constraint: Constraint) -> None:
        """Add what a constraint gives: its domain's pods, weighed; nothing where a node lacks the label."""
        question = pods_counted(self._inclusion.pod, constraint.selector)
        give = self._by_node if constraint.topology_key == HOSTNAME else self._by_domain
        self._total += give(constraint, question)

    def _by_node(self, constraint: Constraint, question: Question | None) -> Floats:
        """Every scored node is a domain of its own, whatever its hostname label says."""
        nodes, key = self._nodes, constraint.topology_key
        pods = np.zeros(len(nodes), dtype=np.int64) if question is None else nodes.count(question)
        given = _weighed(pods, len(nodes) - self._left_out.size, constraint)
        if not labelled(nodes, key):
            given *= places(nodes, key) > 0
        return given

    def _by_domain(self, constraint: Constraint, question: Question | None) -> Floats:
        """The domains are those that have scored nodes; the pods of each count on its nodes."""
        nodes, key = self._nodes, constraint.topology_key
        included = self._inclusion.mask(nodes, constraint)
        counting = self._counted if included is None else self._counted & included
        name = self._needed, self._inclusion.name(constraint)
        if question is None:
            pods = no_domains(nodes, key)
        else:
            pods = count_in(nodes, key, question, _by_text(nodes, key, counting, name))
        scored = self._scored_domains(key)
        pods *= scored
        given = _weighed(pods, np.count_nonzero(scored), constraint)
        given[0] = 0.0
        return on_nodes(nodes, key, given)

    def _scored_domains(self, key: str) -> Mask:
        """Which domains have scored nodes. Shapes: result bool (v + 1,)."""
        nodes = self._nodes
        where, places_in_all = _places_by_text(nodes, key), width(nodes, key)
        count = nodes.fact(("nodes by text", key), lambda _: np.bincount(where, minlength=places_in_all))
        if self._left_out.size:
            count = count - np.bincount(where[self._left_out], minlength=places_in_all)
        scored: Mask = count > 0
        return scored

    def scores(self) -> Scores:
        """The sums, rounded once.

        Shapes: result int64 (n,).
        """
        total = self._total if self._counted.all() else self._total * self._counted
        return round_half_away(total)


def _weighed(pods: Ints, size: int, constraint: Constraint) -> Floats:
    """What so many pods give where there are `size` domains. Shapes: any."""
    given: Floats = pods * math.log(size + 2)
    given += float(constraint.max_skew - 1)
    return given


def _places_by_text(nodes: Snapshot, key: str) -> Ints:
    """The nodes' places, those without the label among those whose value is empty: upstream mixes both."""
    where = places(nodes, key)
    if not _has_both(nodes, key):
        return where
    return np.where(where == 0, nodes.label(key).index[""] + 1, where)


def _has_both(nodes: Snapshot, key: str) -> bool:
    """Whether some nodes lack the label and some have an empty one."""
    return "" in nodes.label(key).index and not labelled(nodes, key)


def _by_text(nodes: Snapshot, key: str, counting: Mask, name: Hashable) -> Division:
    """The domains of the nodes that count, those without the label among those whose value is empty."""
    if not _has_both(nodes, key):
        return division(nodes, key, counting, name)
    return Division((key, "by text", name), _places_by_text(nodes, key) * counting, width(nodes, key))


def normalized(scores: Scores, ignored: Mask) -> Scores:
    """The fewer pods, the better: the lowest score comes out highest, ignored nodes at 0.

    Shapes: all (k,).
    """
    kept = scores[~ignored] if np.count_nonzero(ignored) else scores
    lowest, highest = int(kept.min(initial=2**63 - 1)), int(kept.max(initial=0))
    final: Scores
    if highest == 0:
        final = np.full(scores.shape, MAX_NODE_SCORE, dtype=np.int64)
    elif highest <= TABLED and lowest >= 0:
        turned = MAX_NODE_SCORE * (highest + lowest - np.arange(highest + 1)) // highest
        final = turned.take(scores)
    else:
        final = MAX_NODE_SCORE * (highest + lowest - scores) // highest
    final[ignored] = 0
    return final
