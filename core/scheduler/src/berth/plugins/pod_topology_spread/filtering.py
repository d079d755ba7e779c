"""Counting for the hard constraints."""

from collections.abc import Sequence

import msgspec
import numpy as np

from berth.framework.interface import ReasonCodes
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps
from berth.plugins.in_tree import all_pass
from berth.plugins.pod_topology_spread.constraints import (
    Inclusion,
    SpreadConstraint,
)
from berth.plugins.topology import (
    Domains,
    count_in,
    labelled,
    no_domains,
    on_nodes,
    places,
)
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.placed.pod_counts import Division
from berth.snapshot.pod_info import PodClass, PodInfo
from berth.snapshot.snapshot import Snapshot

MISSING_LABEL, SKEWED = 1, 2
MANY = 2**62
"""More pods than any domain has."""


class SpreadTally:
    """One constraint's pods by domain, and which domains there are.

    Shapes: pods int64 (v + 1,), known bool (v + 1,), places as in `berth.plugins.topology`.
    """

    __slots__ = ("known", "pods")

    def __init__(self, pods: Domains, known: Mask) -> None:
        self.pods = pods
        self.known = known

    def smallest(self, min_domains: int) -> int:
        """How many pods the emptiest domain has; 0 where there are fewer domains than wanted."""
        known, counts = self.known[1:], self.pods[1:]
        there = np.count_nonzero(known)
        if there < max(min_domains, 1):
            return 0
        return int((counts if there == known.size else counts[known]).min())

    def with_delta(self, where: Ints, delta: "DomainDelta", min_domains: int) -> tuple[Ints, Ints]:
        """How many pods each row's domain has after the row's own changes, and the emptiest domain.

        Shapes: where, both results int64 (k,).
        """
        pods = self.pods[where] + delta.shift
        counts = self.pods[self.known]
        order = np.argsort(counts)[:2]
        least, second = (*counts[order].tolist(), MANY, MANY)[:2]
        emptiest = np.flatnonzero(self.known)[order[0]] if order.size else -1
        others = np.where(where == emptiest, second, least)
        smallest = np.where(self.known[where] | delta.touched, np.minimum(others, pods), others)
        domains = counts.size + (delta.touched & ~self.known[where])
        return pods, np.where(domains < max(min_domains, 1), 0, smallest)


class DomainDelta(msgspec.Struct, frozen=True):
    """What pods that came and went change for one constraint, row by row.

    Shapes: shift int64 (k,), pods more in the row's domain; touched bool (k,), where any came or went.
    """

    shift: Ints
    touched: Mask

    @classmethod
    def of(cls, k: int) -> "DomainDelta":
        """Nothing has changed."""
        return cls(np.zeros(k, dtype=np.int64), np.zeros(k, dtype=bool))

    def copy(self) -> "DomainDelta":
        """A copy that can change."""
        return DomainDelta(self.shift.copy(), self.touched.copy())

    def add(self, rows: Sequence[int], sign: int) -> None:
        """Count a pod in or out on each of the rows, on some perhaps several."""
        np.add.at(self.shift, rows, sign)
        self.touched[rows] = True


class SpreadTallies:
    """A pod's hard constraints with their tallies; clones follow simulated pods.

    Where no node has all of the labels that they spread over, every node lacks one, whatever pods there are,
    and no domain has a node that counts: then nothing is tallied.
    """

    __slots__ = ("_deltas", "_inclusion", "_meaning", "_possible", "constraints", "pod", "tallies")

    def __init__(self, pod: Pod, constraints: Sequence[SpreadConstraint], inclusion: Inclusion) -> None:
        self.pod = pod
        self.constraints = constraints
        self.tallies: list[SpreadTally] = []
        self._inclusion = inclusion
        self._possible = True
        self._deltas: list[DomainDelta] = []
        self._meaning: dict[PodClass, tuple[bool, ...]] = {}

    def clone(self) -> "SpreadTallies":
        """A copy whose tallies can change."""
        twin = SpreadTallies(self.pod, self.constraints, self._inclusion)
        twin.tallies = [SpreadTally(tally.pods.copy(), tally.known.copy()) for tally in self.tallies]
        twin._possible = self._possible
        twin._deltas = [delta.copy() for delta in self._deltas]
        twin._meaning = self._meaning
        return twin

    def count(self, nodes: Snapshot) -> Steps[None]:
        """Count the placed pods on nodes that have all keys and that the constraint includes, in steps."""
        if not self._inclusion.possible(nodes):
            self._possible, self.constraints = False, ()
            return
        yield from self._inclusion.look(nodes)
        for constraint in self.constraints:
            key, eligible = constraint.topology_key, self._division(nodes, constraint)
            question = self._inclusion.question(constraint)
            pods = no_domains(nodes, key) if question is None else count_in(nodes, key, question, eligible)
            self.tallies.append(SpreadTally(pods, eligible.known.copy()))
            yield

    def follow(self, other: PodInfo, node: Snapshot, sign: int) -> None:
        """Count a pod in or out on a table of one node.

        Unlike in the first count, a terminating pod counts, and so does one that a selector that asks nothing
        matches: upstream's behaviour.
        """
        if other.pod.namespace != self.pod.namespace:
            return
        for constraint, tally in zip(self.constraints, self.tallies, strict=True):
            if constraint.selector.matches(other.pod.labels) and self._eligible(node, constraint)[0]:
                place = places(node, constraint.topology_key)[0]
                tally.pods[place] += sign
                tally.known[place] = True

    def follow_rows(self, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int) -> None:
        """Count pods in or out on rows of a table, each of which is simulated independently.

        Cost: O(pods) look-ups, one for each distinct set of labels more.
        """
        self._deltas = self._deltas or [DomainDelta.of(len(nodes)) for _ in self.constraints]
        for i, constraint in enumerate(self.constraints):
            eligible = self._eligible(nodes, constraint)
            rows = [row for row, other in others if self._meant(other)[i] and eligible[row]]
            self._deltas[i].add(rows, sign)

    def _meant(self, other: PodInfo) -> tuple[bool, ...]:
        """Which of the constraints' selectors match the pod."""
        known = self._meaning.get(other.pod_class)
        if known is None:
            pod = other.pod
            here = pod.namespace == self.pod.namespace
            known = tuple(here and c.selector.matches(pod.labels) for c in self.constraints)
            self._meaning[other.pod_class] = known
        return known

    def codes(self, nodes: Snapshot) -> ReasonCodes:
        """Where the first constraint that fails lacks its label (1) or would be skewed (2).

        Shapes: result uint8 (n,).
        """
        if not self._possible:
            return np.full(len(nodes), MISSING_LABEL, dtype=np.uint8)
        if self._deltas:
            return self._codes_by_row(nodes)
        codes: ReasonCodes = all_pass(len(nodes))
        for constraint, tally in zip(self.constraints, self.tallies, strict=True):
            own = int(constraint.selector.matches(self.pod.labels))
            most = constraint.max_skew + tally.smallest(constraint.min_domains) - own
            skewed = tally.pods > most
            skewed[0] = False
            if np.count_nonzero(skewed) or not labelled(nodes, constraint.topology_key):
                failure = skewed * np.uint8(SKEWED)
                failure[0] = MISSING_LABEL
                found = on_nodes(nodes, constraint.topology_key, failure)
                codes = np.where(codes == 0, found, codes) if np.count_nonzero(codes) else found
        return codes

    def _codes_by_row(self, nodes: Snapshot) -> ReasonCodes:
        codes: ReasonCodes = all_pass(len(nodes))
        for constraint, tally, delta in zip(self.constraints, self.tallies, self._deltas, strict=True):
            where = places(nodes, constraint.topology_key)
            own = int(constraint.selector.matches(self.pod.labels))
            pods, smallest = tally.with_delta(where, delta, constraint.min_domains)
            skewed = pods > constraint.max_skew + smallest - own
            failure = np.where(where == 0, np.uint8(MISSING_LABEL), skewed * np.uint8(SKEWED))
            codes = np.where(codes == 0, failure, codes)
        return codes

    def _eligible(self, nodes: Snapshot, constraint: SpreadConstraint) -> Mask:
        eligible: Mask = self._division(nodes, constraint).domain_of[nodes.rows] > 0
        return eligible

    def _division(self, nodes: Snapshot, constraint: SpreadConstraint) -> Division:
        """The constraint's domains, of nodes of the whole snapshot that have all keys and count for it."""
        return self._inclusion.division(nodes, constraint)
