"""Nodes as if their nominated pods were running.

Every cycle filters these nodes twice, once with the nominated pods added. So their requests are kept as
columns, and a cycle updates only the nominations that changed since the last one.

Source: pkg/scheduler/framework/runtime/framework.go addGENominatedPods (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from berth.framework.handle import Nominator
from berth.objects.pods.pod import Pod
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.on_demand import OnDemand
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.pod_sums import BEFORE_REQUESTS, added_up, places_of
from berth.snapshot.snapshot import Snapshot

PRIORITIES_REMEMBERED = 4


class NominatedRows(msgspec.Struct, frozen=True):
    """The rows with nominated pods, and what these pods request there.

    Shapes: rows intp (k,), ascending; count int64 (k,); requested int64 (r, k); non_zero int64 (2, k).
    """

    rows: Rows
    pods: Mapping[int, Sequence[PodInfo]]
    """By row."""
    count: Ints
    requested: Ints
    non_zero: Ints

    def among(self, mask: Mask) -> "NominatedRows":
        """The nominated rows within the mask. Shapes: mask bool (n,), over the table's rows."""
        return self._picked(np.flatnonzero(mask[self.rows]))

    def at(self, rows: Rows) -> tuple[Rows, "NominatedRows"]:
        """Which of the given rows, by index, have nominated pods, and what these request there."""
        places = np.searchsorted(self.rows, rows)
        places[places == self.rows.size] = 0
        (here,) = np.nonzero(self.rows[places] == rows) if self.rows.size else (self.rows[:0],)
        return here, self._picked(places[here])

    def _picked(self, places: Rows) -> "NominatedRows":
        return NominatedRows(
            self.rows[places],
            self.pods,
            self.count[places],
            self.requested[:, places],
            self.non_zero[:, places],
        )


class NominatedPods:
    """The nominator's pods with their requests, computed once for each version of a pod."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._position = -1
        self._pods: dict[str, list[PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._columns: BoundedCache[int, _Columns] = BoundedCache(max_entries=PRIORITIES_REMEMBERED)

    def any(self) -> bool:
        """Whether any pod is nominated to a node."""
        self._follow()
        return bool(self._pods)

    def beside(self, pod: Pod, nodes: Snapshot) -> NominatedRows:
        """The nominated pods of the same or a higher priority, the pod itself excluded."""
        self._follow()
        columns = self._columns.get(pod.priority)
        if columns is None:
            self._columns.put(pod.priority, columns := _Columns(pod.priority))
        columns.follow(self._pods, self._nominator, nodes)
        return columns.without(pod.uid, nodes.row_of.get(self._node_of.get(pod.uid, "")))

    def on_node(self, pod: Pod, name: str) -> list[PodInfo]:
        """The same, of one node."""
        self._follow()
        others = self._pods.get(name, ())
        return [info for info in others if info.pod.priority >= pod.priority and info.uid != pod.uid]

    def _follow(self) -> None:
        changes = self._nominator.changes
        if changes.end == self._position:
            return
        names: Iterable[str] | None = changes.since(self._position) if self._position >= 0 else None
        self._position = changes.end
        if names is None:
            names = [*self._pods, *self._nominator.nodes_with_nominations()]
        for name in dict.fromkeys(names):
            self._look_up(name)

    def _look_up(self, name: str) -> None:
        known = {info.uid: info for info in self._pods.pop(name, ())}
        for uid in known:
            if self._node_of.get(uid) == name:
                del self._node_of[uid]
        infos = [_info(pod, known.get(pod.uid)) for pod in self._nominator.nominated_pods_for_node(name)]
        if infos:
            self._pods[name] = infos
            self._node_of |= {info.uid: name for info in infos}


class _Columns:
    """The requests of nominated pods of at least that priority, by row of one table.

    Shapes: sums int64 (3 + r, n): count, cpu and memory with defaults, requests.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority
        self._position = -1
        self._nodes: Snapshot | None = None
        self._static_generation = -1
        self._names: tuple[str, ...] = ()
        self._places: Mapping[str, int] = {}
        self._sums: Ints = np.zeros((BEFORE_REQUESTS, 0), dtype=np.int64)
        self._pods: dict[int, Sequence[PodInfo]] = {}

    def follow(self, pods: Mapping[str, Sequence[PodInfo]], nominator: Nominator, nodes: Snapshot) -> None:
        """Update the rows whose nominations changed; all rows where the table is another one."""
        same = nodes is self._nodes and nodes.static_generation == self._static_generation
        same = same and nodes.resource_names is self._names
        changes = nominator.changes
        names: Iterable[str] | None = changes.since(self._position) if same else None
        self._position = changes.end
        if names is None:
            self._begin(nodes)
            names = pods
        for name in names:
            row = nodes.row_of.get(name)
            if row is not None:
                self._set(row, [info for info in pods.get(name, ()) if info.pod.priority >= self._priority])

    def without(self, uid: str, row: int | None) -> NominatedRows:
        """The columns without the pod of that UID on that row."""
        sums, pods = self._sums, self._pods
        if row is not None and any(info.uid == uid for info in pods.get(row, ())):
            sums, pods = sums.copy(), pods.copy()
            others = [info for info in pods.pop(row) if info.uid != uid]
            sums[:, row] = added_up(others, self._places)
            if others:
                pods[row] = others
        rows = np.flatnonzero(sums[0])
        picked = sums[:, rows]
        return NominatedRows(rows, pods, picked[0], picked[BEFORE_REQUESTS:], picked[1:BEFORE_REQUESTS])

    def _begin(self, nodes: Snapshot) -> None:
        self._nodes, self._static_generation = nodes, nodes.static_generation
        self._names = nodes.resource_names
        self._places = places_of(self._names)
        self._sums = np.zeros((BEFORE_REQUESTS + len(self._names), len(nodes)), dtype=np.int64)
        self._pods = {}

    def _set(self, row: int, infos: list[PodInfo]) -> None:
        self._pods.pop(row, None)
        if infos:
            self._pods[row] = infos
        self._sums[:, row] = added_up(infos, self._places)


def with_pods(nodes: Snapshot, nominated: NominatedRows) -> Snapshot:
    """A table of the nominated rows, in their order, with the nominated pods added.

    Counts over other nodes (`placed`) are unchanged, so it is for plugins that look at one node at a time.
    """
    added = [nominated.pods[row] for row in nominated.rows.tolist()]
    table = nodes.view(nominated.rows)
    table.requested = table.requested + nominated.requested
    table.non_zero_requested = table.non_zero_requested + nominated.non_zero
    table.pod_count = table.pod_count + nominated.count
    here = table.pods
    table.pods = OnDemand(len(here), lambda i: here[i] | {info.uid: info for info in added[i]})
    table.ports = OnDemand(
        len(here), lambda i: {port for pod in table.pods[i].values() for port in pod.ports}
    )
    return table


def _info(pod: Pod, known: PodInfo | None) -> PodInfo:
    return known if known is not None and known.pod is pod else PodInfo(pod)
