"""Counting for required terms: the incoming pod's, and anti-affinity of placed pods."""

from collections.abc import Mapping

import numpy as np

from berth.framework.interface import ReasonCodes
from berth.objects.pod import Pod
from berth.plugins.in_tree import all_pass
from berth.plugins.inter_pod_affinity.terms import OwnTerms, Wanted
from berth.plugins.topology import Domains, no_domains, places, sums
from berth.snapshot.affinity_terms import HeldTerm, TermKind
from berth.snapshot.columns import Mask
from berth.snapshot.placed_pods import Question
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

NOT_NEAR, TOO_NEAR, NOT_WANTED = 1, 2, 3

ByKey = dict[str, Domains]
"""Numbers of pods by topology key and domain."""


class Neighbours:
    """How many placed pods matter to the incoming one, by domain; clones follow simulated pods.

    `near` counts pods that all of its affinity terms mean, once for each term; `away` those that one of its
    anti-affinity terms means; `unwilling` those that hold an anti-affinity term which means it.
    """

    __slots__ = ("_namespace_labels", "_pod", "away", "near", "terms", "unwilling")

    def __init__(self, pod: Pod, terms: OwnTerms, namespace_labels: Mapping[str, str]) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels
        self.terms = terms
        self.near: ByKey = {}
        self.away: ByKey = {}
        self.unwilling: ByKey = {}

    def clone(self) -> "Neighbours":
        """A copy whose counts can change."""
        twin = Neighbours(self._pod, self.terms, self._namespace_labels)
        for name in ("near", "away", "unwilling"):
            setattr(twin, name, {key: domains.copy() for key, domains in getattr(self, name).items()})
        return twin

    def count(self, nodes: Snapshot, about: tuple[HeldTerm, ...]) -> None:
        """Count all placed pods; `about` are the terms of placed pods that mean the incoming one."""
        for held in about:
            if held.kind is TermKind.REQUIRED_ANTI_AFFINITY:
                key = held.term.topology_key
                _add(self.unwilling, key, sums(nodes, key, nodes.holders(held)))
        if self.terms.affinity:
            all_of_them = nodes.count(Question(tuple(term.like for term in self.terms.affinity)))
            for term in self.terms.affinity:
                _add(self.near, term.topology_key, sums(nodes, term.topology_key, all_of_them))
        for term in self.terms.anti_affinity:
            meant = nodes.count(Question((term.like,)))
            _add(self.away, term.topology_key, sums(nodes, term.topology_key, meant))

    @property
    def idle(self) -> bool:
        """Whether no node can be turned down."""
        required = self.terms.affinity or self.terms.anti_affinity
        return not required and not any(domains.any() for domains in self.unwilling.values())

    def follow(self, other: PodInfo, node: Snapshot, sign: int) -> None:
        """Count a pod in or out on a table of one node."""
        for held in other.terms:
            if held.kind is TermKind.REQUIRED_ANTI_AFFINITY and held.term.matches(
                self._pod, self._namespace_labels
            ):
                _bump(self.unwilling, held.term.topology_key, node, sign)
        if self.terms.all_mean(other.pod):
            for term in self.terms.affinity:
                _bump(self.near, term.topology_key, node, sign)
        for term in self.terms.anti_affinity:
            if term.means(other.pod):
                _bump(self.away, term.topology_key, node, sign)

    def codes(self, nodes: Snapshot) -> ReasonCodes:
        """Where the pod is not near what it wants (1), near what it avoids (2), or avoided itself (3).

        Shapes: result uint8 (n,).
        """
        codes: ReasonCodes = all_pass(len(nodes))
        for code, mask in (
            (NOT_WANTED, _anywhere(self.unwilling, nodes)),
            (TOO_NEAR, _anywhere(self.away, nodes)),
            (NOT_NEAR, self._not_near(nodes)),
        ):
            if mask is not None and mask.any():
                codes = np.where(mask, np.uint8(code), codes)
        return codes

    def _not_near(self, nodes: Snapshot) -> Mask | None:
        """Where a term has no pod; the first of a series may go anywhere that has the labels.

        Shapes: result bool (n,).
        """
        if not self.terms.affinity:
            return None
        first = not any(d.any() for d in self.near.values()) and self.terms.all_mean(self._pod)
        failing = [_lacking(term, self.near, nodes, labels_only=first) for term in self.terms.affinity]
        mask: Mask = np.logical_or.reduce(failing)
        return mask


def _lacking(term: Wanted, near: ByKey, nodes: Snapshot, *, labels_only: bool) -> Mask:
    where = places(nodes, term.topology_key)
    if labels_only:
        unlabelled: Mask = where == 0
        return unlabelled
    mask: Mask = (near[term.topology_key] <= 0)[where]
    return mask


def _anywhere(counts: ByKey, nodes: Snapshot) -> Mask | None:
    """Which nodes are in a domain that has any; place 0, of nodes without the label, never has."""
    masks = [(domains > 0)[places(nodes, key)] for key, domains in counts.items() if domains.any()]
    if not masks:
        return None
    found: Mask = np.logical_or.reduce(masks)
    return found


def _add(counts: ByKey, key: str, domains: Domains) -> None:
    counts[key] = counts[key] + domains if key in counts else domains


def _bump(counts: ByKey, key: str, node: Snapshot, sign: int) -> None:
    place = places(node, key)[0]
    if place:
        if key not in counts:
            counts[key] = no_domains(node, key)
        counts[key][place] += sign
