"""Counting for the hard constraints."""

from collections.abc import Sequence

import numpy as np

from berth.framework.interface import ReasonCodes
from berth.objects.pod import Pod
from berth.plugins.in_tree import all_pass
from berth.plugins.pod_topology_spread.constraints import (
    Constraint,
    Inclusion,
    pods_counted,
    topology_keys,
)
from berth.plugins.topology import Domains, places, sums, with_all
from berth.snapshot.columns import Mask
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

MISSING_LABEL, SKEWED = 1, 2


class Tally:
    """One constraint's pods by domain, and which domains there are.

    Shapes: pods int64 (v + 1,), known bool (v + 1,), places as in `berth.plugins.topology`.
    """

    __slots__ = ("known", "pods")

    def __init__(self, pods: Domains, known: Mask) -> None:
        self.pods = pods
        self.known = known

    def smallest(self, min_domains: int) -> int:
        """How many pods the emptiest domain has; 0 where there are fewer domains than wanted."""
        counts = self.pods[self.known]
        return 0 if counts.size < max(min_domains, 1) else int(counts.min())


class Spread:
    """A pod's hard constraints with their tallies; clones follow simulated pods."""

    __slots__ = ("_inclusion", "constraints", "keys", "pod", "tallies")

    def __init__(self, pod: Pod, constraints: Sequence[Constraint], inclusion: Inclusion) -> None:
        self.pod = pod
        self.constraints = constraints
        self.keys = topology_keys(constraints)
        self.tallies: list[Tally] = []
        self._inclusion = inclusion

    def clone(self) -> "Spread":
        """A copy whose tallies can change."""
        twin = Spread(self.pod, self.constraints, self._inclusion)
        twin.tallies = [Tally(tally.pods.copy(), tally.known.copy()) for tally in self.tallies]
        return twin

    def count(self, nodes: Snapshot) -> None:
        """Count the placed pods on nodes that have all keys and that the constraint includes."""
        for constraint in self.constraints:
            eligible = self._eligible(nodes, constraint)
            counted = pods_counted(nodes, self.pod, constraint.selector) * eligible
            self.tallies.append(
                Tally(
                    sums(nodes, constraint.topology_key, counted),
                    sums(nodes, constraint.topology_key, eligible) > 0,
                )
            )

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

    def codes(self, nodes: Snapshot) -> ReasonCodes:
        """Where the first constraint that fails lacks its label (1) or would be skewed (2).

        Shapes: result uint8 (n,).
        """
        codes: ReasonCodes = all_pass(len(nodes))
        for constraint, tally in zip(self.constraints, self.tallies, strict=True):
            where = places(nodes, constraint.topology_key)
            own = int(constraint.selector.matches(self.pod.labels))
            most = constraint.max_skew + tally.smallest(constraint.min_domains) - own
            failure = np.where(tally.pods > most, np.uint8(SKEWED), np.uint8(0))
            failure[0] = MISSING_LABEL
            codes = np.where(codes == 0, failure[where], codes)
        return codes

    def _eligible(self, nodes: Snapshot, constraint: Constraint) -> Mask:
        labelled, included = with_all(nodes, self.keys), self._inclusion.mask(nodes, constraint)
        return labelled if included is None else labelled & included
