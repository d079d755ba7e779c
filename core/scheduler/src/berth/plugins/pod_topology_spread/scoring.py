"""Counting for the soft constraints, and the score that comes of it."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import MAX_NODE_SCORE, Scores
from berth.framework.score import TABLED, round_half_away
from berth.objects.steps import Steps
from berth.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    Inclusion,
    SpreadConstraint,
)
from berth.plugins.topology import (
    count_in,
    labelled,
    no_domains,
    on_nodes,
    places,
    topology,
)
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.placed.placed_pods import PodQuery
from berth.snapshot.placed.pod_counts import Division
from berth.snapshot.snapshot import Snapshot

Floats = NDArray[np.float64]


class SoftSpread:
    """What soft constraints give each node, over the domains of the nodes that are scored.

    Shapes: ignored bool (k,), the feasible nodes that lack a label which all need to have, and score 0; None
        where none does.
    """

    __slots__ = ("_inclusion", "_left_out", "_nodes", "_total", "_with_labels", "ignored")

    def __init__(self, inclusion: Inclusion, nodes: Snapshot, feasible: Mask) -> None:
        self._inclusion = inclusion
        self._nodes = nodes
        with_labels = inclusion.with_keys(nodes)
        self._with_labels: Mask | None = None if with_labels.all() else with_labels
        self.ignored: Mask | None = None
        scored = feasible
        if self._with_labels is not None:
            self.ignored, scored = ~self._with_labels[feasible], feasible & self._with_labels
        self._left_out: Rows = np.flatnonzero(~scored)
        self._total: Floats | None = None

    def add_all(self, constraints: Iterable[SpreadConstraint]) -> Steps[None]:
        """Add what the constraints give, in steps; nothing where no node has all labels: each scores 0."""
        if not self._inclusion.possible(self._nodes):
            self._total = np.zeros(len(self._nodes), dtype=np.float64)
            return
        yield from self._inclusion.look(self._nodes)
        for constraint in constraints:
            self._add(constraint)
            yield

    def _add(self, constraint: SpreadConstraint) -> None:
        """Add what a constraint gives: its domain's pods, weighed; nothing where a node lacks the label."""
        question = self._inclusion.question(constraint)
        give = self._by_node if constraint.topology_key == HOSTNAME else self._by_domain
        given = give(constraint, question)
        self._total = given if self._total is None else np.add(self._total, given, out=self._total)

    def _by_node(self, constraint: SpreadConstraint, question: PodQuery | None) -> Floats:
        """Every scored node is a domain of its own, whatever its hostname label says."""
        nodes, key = self._nodes, constraint.topology_key
        pods = np.zeros(len(nodes), dtype=np.int64) if question is None else nodes.count(question)
        given = _weighed(pods, len(nodes) - self._left_out.size, constraint)
        if not labelled(nodes, key):
            given *= places(nodes, key) > 0
        return given

    def _by_domain(self, constraint: SpreadConstraint, question: PodQuery | None) -> Floats:
        """The domains are those that have scored nodes; the pods of each count on its nodes."""
        nodes, key = self._nodes, constraint.topology_key
        if question is None:
            pods = no_domains(nodes, key)
        else:
            pods = count_in(nodes, key, question, self._division(constraint))
        scored = self._scored_domains(key)
        pods *= scored
        given = _weighed(pods, int(np.count_nonzero(scored)), constraint)
        given[0] = 0.0
        return on_nodes(nodes, key, given)

    def _division(self, constraint: SpreadConstraint) -> Division:
        """The domains of the nodes that count, those without the label among those whose value is empty."""
        nodes, key = self._nodes, constraint.topology_key
        counted = self._inclusion.division(nodes, constraint)
        if not _has_both(nodes, key):
            return counted
        mask = self._inclusion.with_keys(nodes)
        included = self._inclusion.mask(nodes, constraint)
        where = _places_by_text(nodes, key) * (mask if included is None else mask & included)
        name = "by text", key, self._inclusion.name(constraint)
        return Division(name, where, counted.known)

    def _scored_domains(self, key: str) -> Mask:
        """Which domains have scored nodes. Shapes: result bool (v + 1,)."""
        nodes = self._nodes
        where, width = _places_by_text(nodes, key), topology(nodes, key).width
        count = nodes.fact(("nodes by text", key), lambda _: np.bincount(where, minlength=width))
        if self._left_out.size:
            count = count - np.bincount(where[self._left_out], minlength=width)
        scored: Mask = count > 0
        return scored

    def scores(self) -> Scores:
        """The sums, rounded once.

        Shapes: result int64 (n,).
        """
        assert self._total is not None, "there is a constraint"
        total, labels = self._total, self._with_labels
        return round_half_away(total if labels is None else total * labels)


def _weighed(pods: Ints, size: int, constraint: SpreadConstraint) -> Floats:
    """What so many pods give where there are `size` domains. Shapes: any."""
    given: Floats = pods.astype(np.float64)
    given *= math.log(size + 2)
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


def normalized(scores: Scores, ignored: Mask | None) -> Scores:
    """The fewer pods, the better: the lowest score comes out highest, ignored nodes at 0.

    Shapes: all (k,).
    """
    kept = scores if ignored is None else scores[~ignored]
    lowest, highest = int(kept.min(initial=2**63 - 1)), int(kept.max(initial=0))
    final: Scores
    if highest == 0:
        final = np.full(scores.shape, MAX_NODE_SCORE, dtype=np.int64)
    elif highest <= TABLED and lowest >= 0:
        turned = MAX_NODE_SCORE * (highest + lowest - np.arange(highest + 1)) // highest
        final = turned.take(scores)
    else:
        final = MAX_NODE_SCORE * (highest + lowest - scores) // highest
    if ignored is not None:
        final[ignored] = 0
    return final
