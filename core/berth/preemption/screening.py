"""Nodes without their less important pods, kept up to date as columns.

A pod that wants to preempt asks first where it would fit if everybody beneath it were gone: one question
about all nodes at once, answered by the same filters as any other. Only nodes that pass are worth a dry run.
Rows are worked out anew only where pods came or went since the last pod of that priority asked.

Source: spec/plugins.md 5.18 "Vectorisation".
"""

from collections.abc import Iterable
from copy import copy

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.runtime import Framework
from berth.objects.host_ports import HostPort
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_resources_fit.filtering import Fit
from berth.snapshot.columns import Ints, Mask, Rows, grown
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

PRIORITIES_REMEMBERED = 4


class Beneath:
    """The pods below one priority, and what every node is without them.

    Shapes: count int64 (n,), how many they are; requested int64 (r, n) and non_zero int64 (2, n), what they
        request; rows of the snapshot that was followed last.
    """

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self._nodes: Snapshot | None = None
        self._position = 0
        self._others: list[dict[str, PodInfo]] = []
        self._ports: list[set[HostPort]] = []
        self._sums: Ints = np.zeros((3, 0), dtype=np.int64)

    @property
    def count(self) -> Ints:
        """How many there are on each node."""
        return self._sums[0, : len(self._others)]

    @property
    def requested(self) -> Ints:
        """The sums of their requests."""
        return self._sums[3:, : len(self._others)]

    @property
    def non_zero(self) -> Ints:
        """The same with defaults, cpu and memory."""
        return self._sums[1:3, : len(self._others)]

    def follow(self, nodes: Snapshot) -> None:
        """Take over the rows whose pods changed."""
        self._make_room(len(nodes), len(nodes.resource_names))
        index = {name: i for i, name in enumerate(nodes.resource_names, 3)}
        for row in self._changed(nodes):
            self._add_up(row, nodes.pods[row], index)

    def _changed(self, nodes: Snapshot) -> Iterable[int]:
        changed = nodes.changed_rows.since(self._position) if nodes is self._nodes else None
        self._nodes, self._position = nodes, nodes.changed_rows.end
        return range(len(nodes)) if changed is None else {row for row in changed if row < len(nodes)}

    def without(self, rows: Rows) -> Snapshot:
        """These rows as a table that can be changed, as they are once those pods are gone."""
        assert self._nodes is not None, "follow comes first"
        table = self._nodes.view(rows)
        table.pods = [self._others[row].copy() for row in rows.tolist()]
        table.ports = [self._ports[row].copy() for row in rows.tolist()]
        table.requested = table.requested - self.requested[:, rows]
        table.non_zero_requested = table.non_zero_requested - self.non_zero[:, rows]
        table.pod_count = table.pod_count - self.count[rows]
        return table

    def _make_room(self, n: int, r: int) -> None:
        if n > self._sums.shape[1]:
            self._sums = grown(self._sums, 2 * n)
        if 3 + r > self._sums.shape[0]:
            more = np.zeros((3 + r - self._sums.shape[0], self._sums.shape[1]), dtype=np.int64)
            self._sums = np.vstack((self._sums, more))
        for column in (self._others, self._ports):
            del column[n:]
        new = n - len(self._others)
        self._others.extend({} for _ in range(new))
        self._ports.extend(set() for _ in range(new))

    def _add_up(self, row: int, pods: dict[str, PodInfo], index: dict[str, int]) -> None:
        beneath = [info for info in pods.values() if info.pod.priority < self.priority]
        sums = [0] * self._sums.shape[0]
        for info in beneath:
            sums[1] += info.non_zero[0]
            sums[2] += info.non_zero[1]
            for name, amount in info.requests.items():
                sums[index[name]] += amount
        sums[0] = len(beneath)
        self._sums[:, row] = sums
        gone = {info.uid for info in beneath}
        self._others[row] = {uid: info for uid, info in pods.items() if uid not in gone} if gone else pods
        freed = {port for info in beneath for port in info.ports}
        # As upstream has it: of two pods with one port, which only bypass the scheduler, either frees it.
        self._ports[row] = {port for info in pods.values() for port in info.ports} - freed


class Screening:
    """Remembers the columns of the priorities that asked last; follows one snapshot."""

    def __init__(self) -> None:
        self._beneath: dict[int, Beneath] = {}

    def beneath(self, priority: int, nodes: Snapshot) -> Beneath:
        """The pods below that priority as they are now."""
        known = self._beneath.pop(priority, None) or Beneath(priority)
        if len(self._beneath) >= PRIORITIES_REMEMBERED:
            del self._beneath[next(iter(self._beneath))]
        self._beneath[priority] = known
        known.follow(nodes)
        return known


def may_fit(framework: Framework, state: CycleState, nodes: Snapshot, beneath: Beneath) -> Mask:
    """Where the pod's resources fit once the pods beneath it are gone: true of every candidate.

    For pods whose other plugins cannot be asked about all nodes at once. Shapes: result bool (n,).
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
