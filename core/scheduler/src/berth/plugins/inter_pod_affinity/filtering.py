"""Counting for required terms: the incoming pod's, and anti-affinity of placed pods."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from berth.framework.interface import ReasonCodes
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps
from berth.plugins.in_tree import all_pass
from berth.plugins.inter_pod_affinity.terms import OwnTerms
from berth.plugins.topology import (
    Domains,
    count_in,
    count_in_each,
    holders_in,
    no_domains,
    on_nodes,
    places,
    topology,
)
from berth.snapshot.affinity_terms import HeldTerms, TermKind
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.placed.placed_pods import PodQuery
from berth.snapshot.placed.term_holders import About
from berth.snapshot.pod_info import PodClass, PodInfo
from berth.snapshot.snapshot import Snapshot

NOT_NEAR, TOO_NEAR, NOT_WANTED = 1, 2, 3

ByKey = dict[str, Domains]
"""Numbers of pods by topology key and domain."""


class CountedTerm(NamedTuple):
    """What pods are counted for: `near`, `away` or `unwilling`, and the key of the domains."""

    name: str
    key: str


class Neighbours:
    """How many placed pods matter to the incoming one, by domain; clones follow simulated pods.

    `near` counts pods that all of its affinity terms mean, once for each term; `away` those that one of its
    anti-affinity terms means, as often; `unwilling` those that hold an anti-affinity term which means it.
    """

    __slots__ = ("_effects", "_namespace_labels", "_pod", "_shifts", "away", "near", "terms", "unwilling")

    def __init__(self, pod: Pod, terms: OwnTerms, namespace_labels: Mapping[str, str]) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels
        self.terms = terms
        self.near: ByKey = {}
        self.away: ByKey = {}
        self.unwilling: ByKey = {}
        self._shifts: dict[CountedTerm, Ints] = {}
        self._effects: dict[tuple[PodClass, tuple[HeldTerms, ...]], Counter[CountedTerm]] = {}

    def clone(self) -> "Neighbours":
        """A copy whose counts can change."""
        twin = Neighbours(self._pod, self.terms, self._namespace_labels)
        for name in ("near", "away", "unwilling"):
            setattr(twin, name, {key: domains.copy() for key, domains in getattr(self, name).items()})
        twin._shifts = {kind: shift.copy() for kind, shift in self._shifts.items()}
        twin._effects = self._effects
        return twin

    def count(self, nodes: Snapshot, about: About) -> Steps[None]:
        """Count all placed pods, in steps; `about` are the terms of placed pods that mean the incoming one.

        Where no node has a term's label there is nothing to count.
        """
        for key, weights in about.items():
            against = {held: 1 for held in weights if held.kind is TermKind.REQUIRED_ANTI_AFFINITY}
            if against:
                self.unwilling[key], _ = holders_in(nodes, key, against)
                yield
        if self.terms.near:
            keys = [key for key in self.terms.near_keys if key in nodes.label_keys]
            counts = count_in_each(nodes, keys, PodQuery(self.terms.near))
            self.near = {key: counts[key] * self.terms.near_keys[key] for key in keys}
            yield
        for term, times in self.terms.away.items():
            key = term.topology_key
            if key in nodes.label_keys:
                _add(self.away, key, count_in(nodes, key, PodQuery((term.like,))) * times)
            yield

    @property
    def idle(self) -> bool:
        """Whether no node can be turned down."""
        required = self.terms.near or self.terms.away
        return not required and not any(_has_pods(domains) for domains in self.unwilling.values())

    def follow(self, other: PodInfo, node: Snapshot, sign: int) -> None:
        """Count a pod in or out on a table of one node."""
        for counted, times in self._effect(other).items():
            _bump(getattr(self, counted.name), counted.key, node, sign * times)

    def follow_rows(self, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int) -> None:
        """Count pods in or out on rows of a table, each of which is simulated independently.

        Cost: O(pods) look-ups, one for each distinct set of labels and terms more.
        """
        rows: dict[CountedTerm, list[int]] = {}
        for row, other in others:
            for counted, times in self._effect(other).items():
                rows.setdefault(counted, []).extend([row] * times)
        for counted, here in rows.items():
            shift = self._shifts.get(counted)
            if shift is None:
                shift = self._shifts[counted] = np.zeros(len(nodes), dtype=np.int64)
            np.add.at(shift, here, sign)

    def _effect(self, other: PodInfo) -> Counter[CountedTerm]:
        """What the pod counts for, and how often."""
        known = self._effects.get((other.pod_class, other.held))
        if known is None:
            known = Counter(
                CountedTerm("unwilling", held.topology_key)
                for held in other.held
                if held.kind is TermKind.REQUIRED_ANTI_AFFINITY
                and any(each.term.matches(self._pod, self._namespace_labels) for each in held.times)
            )
            if self.terms.all_mean(other.pod):
                known.update({CountedTerm("near", key): times for key, times in self.terms.near_keys.items()})
            for term, times in self.terms.away.items():
                if term.means(other.pod):
                    known[CountedTerm("away", term.topology_key)] += times
            self._effects[other.pod_class, other.held] = known
        return known

    def _pods(self, nodes: Snapshot, name: str, key: str) -> Ints:
        """How many pods count in each row's domain after its own changes; none where it has no such label.

        Shapes: result int64 (n,).
        """
        where, domains = places(nodes, key), getattr(self, name).get(key)
        pods: Ints = np.zeros(len(nodes), dtype=np.int64) if domains is None else domains[where]
        shift = self._shifts.get(CountedTerm(name, key))
        return pods if shift is None else pods + shift * (where > 0)

    def _codes_by_row(self, nodes: Snapshot) -> ReasonCodes:
        codes: ReasonCodes = all_pass(len(nodes))
        for code, name in ((NOT_WANTED, "unwilling"), (TOO_NEAR, "away")):
            for key in self._keys(name):
                codes = np.where(self._pods(nodes, name, key) > 0, np.uint8(code), codes)
        if not self.terms.near:
            return codes
        first, not_near = self._first_by_row(nodes), np.zeros(len(nodes), dtype=bool)
        for key in self.terms.near_keys:
            unlabelled = places(nodes, key) == 0
            not_near |= np.where(first, unlabelled, self._pods(nodes, "near", key) <= 0)
            if not_near.all():
                break
        return np.where(not_near, np.uint8(NOT_NEAR), codes)

    def _keys(self, name: str) -> set[str]:
        return {*getattr(self, name), *(key for kind, key in self._shifts if kind == name)}

    def _first_by_row(self, nodes: Snapshot) -> Mask:
        """Where the pod is the first of a series: none counts anywhere, and it would itself. Shapes: (n,)."""
        everywhere = np.zeros(len(nodes), dtype=np.int64)
        for key in self._keys("near"):
            domains, shift = self.near.get(key), self._shifts.get(CountedTerm("near", key))
            everywhere += 0 if domains is None else int(domains.sum())
            if shift is not None:
                everywhere += shift * (places(nodes, key) > 0)
        first: Mask = (everywhere == 0) & self.terms.all_mean(self._pod)
        return first

    def codes(self, nodes: Snapshot) -> ReasonCodes:
        """Where the pod is not near what it wants (1), near what it avoids (2), or avoided itself (3).

        Shapes: result uint8 (n,).
        """
        if self._shifts:
            return self._codes_by_row(nodes)
        codes: ReasonCodes = all_pass(len(nodes))
        for code, mask in (
            (NOT_WANTED, _anywhere(self.unwilling, nodes)),
            (TOO_NEAR, _anywhere(self.away, nodes)),
            (NOT_NEAR, self._not_near(nodes)),
        ):
            if mask is not None and np.count_nonzero(mask):
                marks = mask * np.uint8(code)
                codes = np.where(mask, marks, codes) if np.count_nonzero(codes) else marks
        return codes

    def unwilling_at(self, nodes: Snapshot) -> Callable[[int], int]:
        """The code of a row for a pod without required terms of its own."""
        by_place = self._unwilling_by_place(nodes)

        def code(row: int) -> int:
            unwilling = any(domains.item(places_of.item(row)) > 0 for places_of, domains in by_place)
            return NOT_WANTED if unwilling else 0

        return code

    def unwilling_on(self, nodes: Snapshot) -> Callable[[Rows], ReasonCodes]:
        """The same for some rows."""
        by_place = self._unwilling_by_place(nodes)

        def codes(rows: Rows) -> ReasonCodes:
            unwilling = np.zeros(rows.size, dtype=bool)
            for places_of, domains in by_place:
                unwilling |= domains.take(places_of.take(rows)) > 0
            return unwilling * np.uint8(NOT_WANTED)

        return codes

    def _unwilling_by_place(self, nodes: Snapshot) -> list[tuple[Ints, Ints]]:
        """The domain of each row, and how many pods of each keep the pod away, by topology key."""
        return [
            (topology(nodes, key).places, domains)
            for key, domains in self.unwilling.items()
            if _has_pods(domains)
        ]

    def _not_near(self, nodes: Snapshot) -> Mask | None:
        """Where a term has no pod; the first of a series may go anywhere that has the labels.

        Shapes: result bool (n,).
        """
        if not self.terms.near:
            return None
        first = not any(_has_pods(d) for d in self.near.values()) and self.terms.all_mean(self._pod)
        found = np.zeros(len(nodes), dtype=bool)
        for key in self.terms.near_keys:
            found |= _lacking(key, self.near, nodes, labels_only=first)
            if found.all():
                break
        return found


def _lacking(key: str, near: ByKey, nodes: Snapshot, *, labels_only: bool) -> Mask:
    if labels_only or key not in near:
        unlabelled: Mask = places(nodes, key) == 0
        return unlabelled
    return on_nodes(nodes, key, near[key] <= 0)


def _anywhere(counts: ByKey, nodes: Snapshot) -> Mask | None:
    """Which nodes are in a domain that has any; place 0, of nodes without the label, never has."""
    masks = [on_nodes(nodes, key, domains > 0) for key, domains in counts.items() if _has_pods(domains)]
    if not masks:
        return None
    found: Mask = np.logical_or.reduce(masks)
    return found


def _has_pods(domains: Domains) -> bool:
    """Whether any domain has a pod; the highest number is found faster than one that is not 0."""
    return int(domains.max()) > 0


def _add(counts: ByKey, key: str, domains: Domains) -> None:
    counts[key] = counts[key] + domains if key in counts else domains


def _bump(counts: ByKey, key: str, node: Snapshot, sign: int) -> None:
    place = places(node, key)[0]
    if place:
        if key not in counts:
            counts[key] = no_domains(node, key)
        counts[key][place] += sign
