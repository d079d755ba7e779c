"""Nodes without their lower-priority pods, as columns that are updated as pods come and go.

Preemption first filters all nodes at once as if all lower-priority pods were gone. Only nodes that pass get
a dry run. For further preemptors of the same priority, only rows whose pods changed are computed again.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode, over all
nodes at once (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.runtime import Framework
from berth.objects.pods.host_ports import HostPort
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_resources_fit.filtering import FitRequest
from berth.preemption.victims import Seniority, by_importance, lower_priority
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.growing import Ints, Mask, Rows, grown
from berth.snapshot.columns.resource_columns import write
from berth.snapshot.on_demand import OnDemand
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.pod_sums import BEFORE_REQUESTS, added_up, places_of
from berth.snapshot.snapshot import Snapshot

PRIORITIES_REMEMBERED = 4


class Potential(msgspec.Struct, frozen=True):
    """The lower-priority pods of one node, the most important first, and what each of them requests.

    Shapes: amounts int64 (m, 3 + r): one, cpu and memory with defaults, requests.
    """

    infos: tuple[PodInfo, ...]
    amounts: Ints
    last_start: float
    """When the one that started last did, -inf where none did. Units: seconds since the epoch."""

    def amounts_of(self, infos: Sequence[PodInfo]) -> Ints:
        """The same of these pods, in that order."""
        place = {info.uid: i for i, info in enumerate(self.infos)}
        return self.amounts[[place[info.uid] for info in infos]]


class LowerPriorityPods:
    """The pods below one priority, and what they request on each node.

    Shapes: count int64 (n,), how many they are; requested int64 (r, n) and non_zero int64 (2, n), what they
        request; rows of the snapshot that was followed last.
    """

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self._nodes: Snapshot | None = None
        self._forget()

    def _forget(self) -> None:
        self._position = -1
        self._names: tuple[str, ...] = ()
        self._places: Mapping[str, int] = {}
        self._sums: Ints = np.zeros((BEFORE_REQUESTS, 0), dtype=np.int64)
        self._potential: dict[int, Potential] = {}

    @property
    def count(self) -> Ints:
        """How many there are on each node."""
        return self._sums[0, : len(self._followed)]

    @property
    def requested(self) -> Ints:
        """The sums of their requests."""
        return self._sums[BEFORE_REQUESTS:, : len(self._followed)]

    @property
    def non_zero(self) -> Ints:
        """The same with defaults, cpu and memory."""
        return self._sums[1:BEFORE_REQUESTS, : len(self._followed)]

    def follow(self, nodes: Snapshot) -> None:
        """Take over the rows whose pods changed."""
        if nodes is not self._nodes or nodes.resource_names is not self._names:
            self._forget()
            self._nodes, self._names = nodes, nodes.resource_names
            self._places = places_of(self._names)
            self._sums = np.zeros((BEFORE_REQUESTS + len(self._names), 0), dtype=np.int64)
        if len(nodes) > self._sums.shape[1]:
            self._sums = grown(self._sums, 2 * len(nodes))
        for row in self._changed(nodes):
            self._potential.pop(row, None)
            self._add_up(row, nodes.pods[row])

    def potential(self, row: int, seniority: Seniority) -> Potential:
        """The pods beneath on that node."""
        known = self._potential.get(row)
        if known is None or known.last_start > seniority.unstarted:
            known = self._ordered(lower_priority(self._followed.pods[row].values(), self.priority), seniority)
            self._potential[row] = known
        return known

    def without(self, rows: Rows) -> Snapshot:
        """These rows as a table whose sums can be changed, as they are once those pods are gone."""
        table = self._followed.view(rows)
        numbers = rows.tolist()
        return self._freed(table, rows, lambda i: self.others(numbers[i]), lambda i: self.ports(numbers[i]))

    def everywhere(self) -> Snapshot:
        """The same of all nodes."""
        return self._freed(self._followed.apart(), slice(None), self.others, self.ports)

    def others(self, row: int) -> dict[str, PodInfo]:
        """The pods of that node that are not beneath."""
        pods = self._followed.pods[row]
        return {uid: info for uid, info in pods.items() if info.pod.priority >= self.priority}

    def ports(self, row: int) -> set[HostPort]:
        """The ports that are taken there then."""
        pods = self._followed.pods[row].values()
        freed = {port for info in pods if info.pod.priority < self.priority for port in info.ports}
        # As upstream has it: of two pods with one port, which only bypass the scheduler, either frees it.
        return {port for info in pods for port in info.ports} - freed

    @property
    def _followed(self) -> Snapshot:
        assert self._nodes is not None, "follow comes first"
        return self._nodes

    def _freed(
        self,
        table: Snapshot,
        rows: slice | Rows,
        others: Callable[[int], dict[str, PodInfo]],
        ports: Callable[[int], set[HostPort]],
    ) -> Snapshot:
        table.pods, table.ports = OnDemand(len(table), others), OnDemand(len(table), ports)
        table.added = np.zeros(len(table), dtype=bool)
        table.requested = table.requested - self.requested[:, rows]
        table.non_zero_requested = table.non_zero_requested - self.non_zero[:, rows]
        table.pod_count = table.pod_count - self.count[rows]
        return table

    def _changed(self, nodes: Snapshot) -> Iterable[int]:
        changed = nodes.changed_rows.since(self._position) if self._position >= 0 else None
        self._position = nodes.changed_rows.end
        return range(len(nodes)) if changed is None else {row for row in changed.tolist() if row < len(nodes)}

    def _add_up(self, row: int, pods: dict[str, PodInfo]) -> None:
        beneath = (info for info in pods.values() if info.pod.priority < self.priority)
        write(self._sums, row, added_up(beneath, self._places))

    def _ordered(self, beneath: list[PodInfo], seniority: Seniority) -> Potential:
        infos = by_importance(beneath, seniority)
        amounts = [added_up([info], self._places) for info in infos]
        last_start = max(map(Seniority(-np.inf).start, (info.pod for info in infos)), default=-np.inf)
        return Potential(
            tuple(infos), np.array(amounts, dtype=np.int64).reshape(len(infos), len(self._sums)), last_start
        )


class Screening:
    """Remembers the columns of the priorities that asked last; follows one snapshot."""

    def __init__(self) -> None:
        self._beneath: BoundedCache[int, LowerPriorityPods] = BoundedCache(max_entries=PRIORITIES_REMEMBERED)

    def beneath(self, priority: int, nodes: Snapshot) -> LowerPriorityPods:
        """The pods below that priority as they are now."""
        known = self._beneath.get(priority)
        if known is None:
            self._beneath.put(priority, known := LowerPriorityPods(priority))
        known.follow(nodes)
        return known


def may_fit(framework: Framework, state: CycleState, nodes: Snapshot, beneath: LowerPriorityPods) -> Mask:
    """Where the pod's resources fit once the pods beneath it are gone: true of every candidate.

    For pods whose other plugins cannot be asked about all nodes at once. Shapes: result bool (n,).
    """
    fit: FitRequest | None = state.get(FitRequest)
    asked = any(isinstance(plugin, NodeResourcesFit) for plugin in framework.plugins.filter)
    if fit is None or not asked or NodeResourcesFit.__name__ in state.skip_filter:
        return np.ones(len(nodes), dtype=bool)
    fits: Mask = fit.codes(beneath.everywhere()) == 0
    return fits
