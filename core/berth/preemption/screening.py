"""Columns of what pods of lower priority hold, so that most nodes need no dry run.

A node without such pods has no victims, and one where the pod's resources do not fit even without all of them
needs no trial to be ruled out. Only rows whose pods changed since the last question are added up again.

Source: spec/plugins.md 5.18 "Vectorisation".
"""

from copy import copy

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.runtime import Framework
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_resources_fit.filtering import Fit
from berth.snapshot.columns import Ints, Mask, grown
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

PRIORITIES_REMEMBERED = 8


class Beneath:
    """What the pods below one priority hold, for each row of the snapshot it follows.

    Shapes: count int64 (n,); requested int64 (r, n), as the snapshot's.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority
        self._seen: list[dict[str, PodInfo] | None] = []
        self._count: Ints = np.zeros(0, dtype=np.int64)
        self._requested: Ints = np.zeros((0, 0), dtype=np.int64)

    @property
    def count(self) -> Ints:
        """How many there are."""
        return self._count[: len(self._seen)]

    @property
    def requested(self) -> Ints:
        """The sums of their requests."""
        return self._requested[:, : len(self._seen)]

    def follow(self, nodes: Snapshot) -> None:
        """Take over the rows whose pods changed."""
        self._make_room(len(nodes), len(nodes.resource_names))
        # The snapshot gives a row a new dict of pods whenever they change.
        changed = [
            row for row, (now, seen) in enumerate(zip(nodes.pods, self._seen, strict=True)) if now is not seen
        ]
        index = {name: i for i, name in enumerate(nodes.resource_names)}
        for row in changed:
            self._seen[row] = nodes.pods[row]
            self._add_up(row, nodes.pods[row], index)

    def _make_room(self, n: int, r: int) -> None:
        if n > self._count.size:
            self._count = grown(self._count, 2 * n)
            self._requested = grown(self._requested, 2 * n)
        if r > self._requested.shape[0]:
            more = np.zeros((r - self._requested.shape[0], self._requested.shape[1]), dtype=np.int64)
            self._requested = np.vstack((self._requested, more))
        del self._seen[n:]
        self._seen.extend([None] * (n - len(self._seen)))

    def _add_up(self, row: int, pods: dict[str, PodInfo], index: dict[str, int]) -> None:
        count, sums = 0, [0] * len(index)
        for info in pods.values():
            if info.pod.priority < self._priority:
                count += 1
                for name, amount in info.requests.items():
                    sums[index[name]] += amount
        self._count[row] = count
        self._requested[:, row] = sums


class Screening:
    """Remembers the columns of the priorities that asked last; follows one snapshot."""

    def __init__(self) -> None:
        self._beneath: dict[int, Beneath] = {}

    def beneath(self, priority: int, nodes: Snapshot) -> Beneath:
        """What the pods below that priority hold now."""
        known = self._beneath.pop(priority, None) or Beneath(priority)
        if len(self._beneath) >= PRIORITIES_REMEMBERED:
            del self._beneath[next(iter(self._beneath))]
        self._beneath[priority] = known
        known.follow(nodes)
        return known


def may_fit(framework: Framework, state: CycleState, nodes: Snapshot, beneath: Beneath) -> Mask:
    """Where the pod's resources fit once the pods beneath it are gone: true of every candidate.

    Shapes: result bool (n,).
    """
    fit: Fit | None = state.get(Fit)
    asked = any(isinstance(plugin, NodeResourcesFit) for plugin in framework.plugins.filter)
    if fit is None or not asked or NodeResourcesFit.__name__ in state.skip_filter:
        return np.ones(len(nodes), dtype=bool)
    freed = copy(nodes)
    freed.requested = nodes.requested - beneath.requested
    freed.pod_count = nodes.pod_count - beneath.count
    fits: Mask = fit.codes(freed) == 0
    return fits
