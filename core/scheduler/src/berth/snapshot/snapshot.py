"""The cluster as a table at one instant: a row a node, columns for everything that plugins ask.

`Cache.update_snapshot` takes over the rows that changed since the last cycle; nothing else writes here. Rows
are dense: a removed node's row is filled with the last one, so a row number holds for one generation only.

    cache (NodeInfo by name) --changed rows--> Snapshot --read by--> plugins
                                                 |
                                                 +-- count_apart(), put_back(): pods of a group that are
                                                 |   placed or removed on trial while its cycle lasts
                                                 +-- what_if(): a node with pods added or removed, for
                                                 |   nominated pods
                                                 +-- view(): some of the rows

Source: pkg/scheduler/backend/cache/snapshot.go (Kubernetes v1.36); docs/decisions/0001-columnar-snapshot.md.
"""

import copy
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.objects.node import Node
from berth.objects.pods.host_ports import HostPort, HostPorts
from berth.objects.quantity import MAX_INT64
from berth.objects.steps import Steps
from berth.objects.taint import Taint
from berth.snapshot.bounded_cache import BoundedCache, size_of
from berth.snapshot.columns.growing import ByRow, Ints, Mask, Rows
from berth.snapshot.columns.label_columns import LabelColumn
from berth.snapshot.columns.node_columns import NodeColumns, says_the_same
from berth.snapshot.columns.resource_columns import RowSums, write
from berth.snapshot.columns.row_columns import RowColumns
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.node_tree import NodeTree
from berth.snapshot.placed.placed_pods import PlacedPods, PodQuery
from berth.snapshot.placed.placed_volumes import PlacedVolumes
from berth.snapshot.placed.pod_counts import Division
from berth.snapshot.pod_info import PodInfo

MAX_ANSWER_BYTES = 64 << 20


class Sized(Protocol):
    """Something that knows how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """About how many bytes."""


F = TypeVar("F", bound=Sized)


class RowState(NamedTuple):
    """A row's pods and what they hold."""

    pods: dict[str, PodInfo]
    sums: RowSums


class Snapshot:
    """Nodes as rows 0 to n-1, and columns over them.

    Shapes: allocatable, requested int64 (r, n) by `resource_names`; non_zero_requested int64 (2, n), cpu and
        memory; pod_count, allowed_pods int64 (n,); unschedulable bool (n,); `rows` selects this table's rows
        out of arrays made for the whole snapshot.
    Units: milli-CPU, bytes, whole units of scalar resources.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.static_generation = 0
        """Grows when something other than pods on nodes changed: rows, labels, taints, offers, images."""
        self.changed_rows = RowJournal()
        """Rows that something changed on: their pods, their node, or which node it is. A row that is noted
        may be gone by now."""
        self.changed_footprints = RowJournal()
        """Those of them that changed in more than another version of a pod with the same footprint."""
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node] = []
        self._pods: list[dict[str, PodInfo]] = []
        self.pods: Sequence[dict[str, PodInfo]] = self._pods
        self.rows: slice | Rows = slice(None)
        self.part_of: Snapshot | None = None
        """The whole snapshot, where this is a table of some of its rows."""
        self.ports: Sequence[set[HostPort]] | None = None
        """The ports taken on each row of a table whose pods are its own; None where the columns tell."""
        self.added: Mask | None = None
        """Where such a table may have pods that the whole snapshot has not there; None says anywhere."""
        self._columns = NodeColumns(self.nodes)
        self.images = self._columns.images
        self._placed = PlacedPods(self._columns.capacity)
        self.volumes = PlacedVolumes()
        """Which rows of the whole snapshot have pods with which volume."""
        self.claims: Mapping[str, int] = self.volumes.claims
        self._answers: BoundedCache[Hashable, Any] = BoundedCache(MAX_ANSWER_BYTES)
        self._row_columns = RowColumns[Snapshot](self.changed_footprints)
        self._scratch = np.empty((0, 0))
        self.tree = NodeTree()
        """The zones that the nodes are in, as the cache knows them."""
        self._search: tuple[tuple[int, int], Rows] | None = None
        self._show()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def resource_names(self) -> tuple[str, ...]:
        """The resource of each row of `allocatable` and `requested`; another tuple once these are others."""
        return self._columns.resources.names

    def resource_index(self, name: str) -> int | None:
        """The row of a resource; None for one that no node offers, and for what `offered` alone knows."""
        return self._columns.resources.index.get(name)

    def offered(self, name: str) -> Ints | None:
        """What each node offers of a resource, not to be written to; None where no node offers any.

        Shapes: result int64 (n,).
        """
        index = self._columns.resources.index.get(name)
        if index is not None:
            amounts: Ints = self.allocatable[index]
            return amounts
        apart = self._columns.resources.offered_apart(name)
        if not apart:
            return None
        everywhere = np.zeros(len(self.whole), dtype=np.int64)
        everywhere[[*apart]] = [min(amount, MAX_INT64) for amount in apart.values()]
        return everywhere[self.rows]

    def held(self, name: str) -> Ints:
        """What the pods of each node hold of a resource, not to be written to; 0 where the node offers none.

        Shapes: result int64 (n,).
        """
        index = self._columns.resources.index.get(name)
        if index is not None:
            amounts: Ints = self.requested[index]
            return amounts
        apart = self._columns.resources.offered_apart(name)
        there = np.zeros(len(self.whole), dtype=np.int64)
        if self.ports is None:
            held = (self._columns.resources.held_apart(row).get(name, 0) for row in apart)
            there[[*apart]] = [min(amount, MAX_INT64) for amount in held]
            return there[self.rows]
        there[[*apart]] = 1
        sums = there[self.rows]
        for i in np.flatnonzero(sums).tolist():
            held = (info.requests.get(name, 0) for info in self.pods[i].values())
            sums[i] = min(sum(held), MAX_INT64)
        return sums

    def held_on_rows(self, name: str) -> ByRow:
        """The same as `held` for single rows of the whole snapshot, while its rows stay where they are."""
        return self._columns.resources.held(name, len(self.whole))

    def ports_on(self, row: int) -> Collection[HostPort]:
        """The host ports that are taken on a row of the whole snapshot."""
        return self._columns.ports.on(row)

    @property
    def taints(self) -> Collection[Taint]:
        """The distinct taints that nodes have."""
        return self._columns.taints.things

    def with_taint(self, taints: Collection[Taint]) -> Mask:
        """Which nodes have any of these taints.

        Shapes: result bool (n,).
        """
        return self._columns.taints.any_of(taints, len(self.whole))[self.rows]

    def taint_count(self, taints: Collection[Taint]) -> Ints:
        """How many of these taints each node has.

        Shapes: result int64 (n,).
        """
        return self._columns.taints.count_of(taints, len(self.whole))[self.rows]

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, over the whole snapshot."""
        return self._columns.labels.column(key)

    @property
    def label_keys(self) -> Collection[str]:
        """The label keys that some node of the whole snapshot has."""
        return self._columns.labels.keys

    @property
    def label_keys_version(self) -> int:
        """Grows whenever `label_keys` change."""
        return self._columns.labels.keys_version

    def label_ids(self, key: str) -> Ints:
        """The number of each node's value of the label, -1 where it has none.

        Shapes: result int64 (n,).
        """
        return self._columns.labels.column(key).ids[: len(self.whole)][self.rows]

    def port_conflicts(self, wanted: Collection[HostPort]) -> Mask | None:
        """Where one of the ports is taken; None where it is nowhere.

        Shapes: result bool (n,).
        """
        everywhere = self._columns.ports.conflicts(wanted, len(self.whole))
        taken = None if everywhere is None else everywhere[self.rows]
        if self.ports is None:
            return taken
        own, ports = np.zeros(len(self), dtype=bool), HostPorts(wanted)
        for i in self.unsure(np.zeros_like(own) if taken is None else taken).tolist():
            own[i] = any(ports.conflicting(used) for used in self.ports[i])
        return own

    def unsure(self, rejected: Mask) -> Rows:
        """The rows of a table of its own pods for which these have to be looked at.

        `rejected` says which rows fail with the pods of the whole snapshot: fewer pods only help.
        Shapes: rejected bool (n,); result intp (k,).
        """
        return np.arange(len(self)) if self.added is None else np.flatnonzero(rejected | self.added)

    def declares(self, feature: str) -> Mask | None:
        """Which nodes declare the feature; None where none does.

        Shapes: result bool (n,).
        """
        on = self._columns.features.column(feature, len(self.whole))
        return None if on is None else on[self.rows]

    def search_rows(self) -> Rows:
        """All rows in the order of a search that may stop early: zone by zone in turn (core 3.8).

        Some rows as a table of their own keep the table's order. Shapes: result intp (n,).
        Cost: O(nodes) after nodes came, went or changed zones, O(1) otherwise.
        """
        if self.part_of is not None:
            return np.arange(len(self), dtype=np.intp)
        version = self.static_generation, self.tree.version
        if self._search is None or self._search[0] != version:
            # A node may have come or gone since this snapshot was taken, while a plugin was awaited.
            known = dict.fromkeys(self.row_of[name] for name in self.tree.names() if name in self.row_of)
            rows = (*known, *(row for row in range(len(self)) if row not in known))
            self._search = version, np.array(rows, dtype=np.intp)
        return self._search[1]

    @property
    def whole(self) -> "Snapshot":
        """The snapshot that this table shows rows of."""
        return self if self.part_of is None else self.part_of

    @property
    def own_pods(self) -> bool:
        """Whether `pods` are this table's own, so that only they tell what is on a node."""
        return self.ports is not None

    def image_on(self, name: str) -> Mask | None:
        """Which nodes have the image; None where none has.

        Shapes: result bool (n,).
        """
        on = self.images.on_nodes(name, len(self.whole))
        return None if on is None else on[self.rows]

    @property
    def placed(self) -> PlacedPods:
        """Counts of pods, over the rows of the whole snapshot."""
        return self._placed

    def count(self, question: PodQuery) -> Ints:
        """How many placed pods on each node meet the question.

        Shapes: result int64 (n,).
        """
        return self._placed.count(question, len(self.whole))[self.rows]

    def count_in(self, question: PodQuery, division: Division) -> Ints:
        """How many placed pods in each domain of the whole snapshot meet the question, not to be written to.

        Shapes: result int64 (width,). Cost: O(1) for domains of many nodes that were asked for before.
        """
        return self._placed.count_in(question, division)

    def answer(self, question: Hashable, compute: Callable[["Snapshot"], NDArray[Any]]) -> NDArray[Any]:
        """What `compute` says of the static columns, worked out once while they stay as they are.

        `question` names the asker and all that the answer depends on besides those columns.

        Shapes: compute gives (n,) for the whole snapshot; the result has this table's rows of it.
        """
        return self.fact(question, compute)[self.rows]

    def fact(self, question: Hashable, compute: Callable[["Snapshot"], F]) -> F:
        """The same of any kind, about the whole snapshot whatever rows this table has."""
        known: F | None = self._answers.get(question)
        if known is None:
            known = compute(self.whole)
            self._answers.put(question, known, known.nbytes + size_of(question))
        return known

    def fact_in_steps(self, question: Hashable, compute: Callable[["Snapshot"], Steps[F]]) -> Steps[F]:
        """The same as `fact`, worked out in steps between which nothing of the snapshot changes."""
        known: F | None = self._answers.get(question)
        if known is None:
            known = yield from compute(self.whole)
            if self._answers.get(question) is None:
                self._answers.put(question, known, known.nbytes + size_of(question))
        return known

    @contextmanager
    def with_answers_apart(self) -> Iterator[None]:
        """Keep no answer of this time: who asks later works as if none had asked. Nothing may change."""
        held, self._answers = self._answers, BoundedCache(MAX_ANSWER_BYTES)
        try:
            yield
        finally:
            self._answers = held

    def of_rows(
        self,
        key: Hashable,
        compute: Callable[["Snapshot"], NDArray[Any]],
        of_row: Callable[["Snapshot"], Callable[[int], Any]],
    ) -> NDArray[Any]:
        """What `compute` says of each row by itself, made again only for rows that changed since.

        `key` names the asker and all that the answer depends on besides the table; `of_row` gives a function
        from a row of the whole snapshot to its part. The result is not to be written to, or kept.

        Shapes: compute gives (n,) or (k, n) for any table, and so is the result; a part has one number or k.
        """
        if self.part_of is not None:
            return compute(self)
        return self._row_columns.column(key, self, compute, of_row)

    def scratch(self, count: int) -> NDArray[np.float64]:
        """Columns to calculate in until the next call; new ones of a large cluster cost more than sums.

        Shapes: result float64 (count, n), of any values.
        """
        if self.part_of is not None:
            return np.empty((count, len(self)))
        if self._scratch.shape[0] < count or self._scratch.shape[1] < self._columns.capacity:
            self._scratch = np.empty((count, self._columns.capacity))
        return self._scratch[:count, : len(self)]

    def apart(self) -> "Snapshot":
        """All rows as a table whose columns can be replaced; it is read as a part of the whole snapshot."""
        table = copy.copy(self)
        table.part_of = self.whole
        return table

    def view(self, rows: slice | Rows) -> "Snapshot":
        """Some rows as a table of their own; its `rows` select out of arrays made for the whole snapshot."""
        table = self.apart()
        table.rows = rows if self.part_of is None else np.arange(len(self.part_of))[self.rows][rows]
        picked = range(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        table.names = [self.names[i] for i in picked]
        table.nodes = [self.nodes[i] for i in picked]
        table.pods = [self.pods[i] for i in picked]
        table.ports = None if self.ports is None else [self.ports[i] for i in picked]
        table.added = None if self.added is None else self.added[rows]
        table.row_of = {name: i for i, name in enumerate(table.names)}
        for column in ("allocatable", "requested", "non_zero_requested"):
            setattr(table, column, getattr(self, column)[:, rows])
        for column in ("pod_count", "allowed_pods", "unschedulable"):
            setattr(table, column, getattr(self, column)[rows])
        return table

    def what_if(
        self, name: str, *, add: Iterable[PodInfo] = (), remove: Iterable[PodInfo] = ()
    ) -> "Snapshot":
        """That node alone, as it would be with some pods more and others less.

        Counts over other nodes (`placed`) stay as they are: plugins that use them follow such changes in
        their own cycle state. Raises: KeyError where there is no such node.
        """
        row = self.row_of[name]
        info = NodeInfo(name)
        for pod in self.pods[row].values():
            info.add_pod(pod)
        for pod in remove:
            info.remove_pod(pod.uid)
        for pod in add:
            info.add_pod(pod)
        table = self.view(slice(row, row + 1))
        table.pods = [info.pods]
        table.requested = np.empty((len(self.resource_names), 1), dtype=np.int64)
        write(table.requested, 0, [info.requested.get(name, 0) for name in self.resource_names])
        table.non_zero_requested = np.empty((2, 1), dtype=np.int64)
        write(table.non_zero_requested, 0, info.non_zero)
        table.pod_count = np.array([len(info.pods)], dtype=np.int64)
        table.ports = [set(info.ports)]
        return table

    def row_state(self, row: int) -> RowState:
        """A row's pods and what they hold, for `put_back`."""
        return RowState(self.pods[row], self._columns.resources.sums(row))

    def count_apart(self, row: int, sign: int, info: PodInfo) -> None:
        """Count a pod in (1) or out (-1) of a row, whatever the cache says (`cache/trials.py`)."""
        pods = dict(self.pods[row])
        if sign > 0:
            pods[info.uid] = info
        else:
            del pods[info.uid]
        self._columns.resources.add(row, info.requests, info.non_zero, sign)
        self._changed_apart(row, pods, sign, info)

    def put_back(self, row: int, before: RowState, sign: int, info: PodInfo) -> None:
        """Undo the latest `count_apart` of a row, which was of that sign and pod."""
        self._columns.resources.restore(row, before.sums)
        self._changed_apart(row, before.pods, -sign, info)

    def _changed_apart(self, row: int, pods: dict[str, PodInfo], sign: int, info: PodInfo) -> None:
        self._pods[row] = pods
        self._count(row, sign, info)
        self._note(row)
        if info.ports:
            self._columns.ports.set_row(row, {port for pod in pods.values() for port in pod.ports})

    def take(self, infos: Iterable[NodeInfo]) -> None:
        """Take over nodes that changed, new ones included; each forgets that it was changed."""
        changed_nodes = False
        for info in infos:
            changed_nodes |= info.node_changed and not self._says_the_same(info)
            self._take(info)
        # Columns that moved in memory are another table to their readers, whatever moved them.
        if changed_nodes or self._shown != (self.resource_names, len(self.names)):
            self._changed_statically()

    def drop(self, name: str) -> None:
        """Remove a node; the last row takes its place. Raises: KeyError where there is no such node."""
        row, last = self.row_of.pop(name), len(self.names) - 1
        for info in self.pods[row].values():
            self._count(row, -1, info)
        self._columns.drop_row(row)
        if row != last:
            self._move(last, row)
            self._note(row)
        del self.names[last], self.nodes[last], self._pods[last]
        self._changed_statically()

    def _says_the_same(self, info: NodeInfo) -> bool:
        """Whether the node's new version says nothing new."""
        row = self.row_of.get(info.name)
        return row is not None and info.node is not None and says_the_same(self.nodes[row], info.node)

    def _take(self, info: NodeInfo) -> None:
        assert info.node is not None, "a ghost has no row"
        row, before = self.row_of.get(info.name), None
        if row is None:
            row = self._append(info)
            changes = [(1, pod) for pod in info.pods.values()]
            info.node_changed = True
        else:
            before, changes = self.nodes[row], info.unseen
            if not (changes or info.node_changed):
                self._pods[row] = info.pods.copy()
                self.changed_rows.note(row)
                return
        self._note(row)
        for sign, pod in changes:
            self._count(row, sign, pod)
        self._pods[row] = info.pods.copy()
        self._columns.resources.set_row(row, info)
        if any(pod.ports for _, pod in changes):
            self._columns.ports.set_row(row, info.ports)
        if info.node_changed:
            self.nodes[row] = info.node
            self._columns.set_node(row, before, info.node)
        info.unseen, info.node_changed = [], False

    def _note(self, row: int) -> None:
        self.changed_rows.note(row)
        self.changed_footprints.note(row)

    def _append(self, info: NodeInfo) -> int:
        row = len(self.names)
        if row == self._columns.capacity:
            self._columns.grow(2 * row)
            self._placed.grow(2 * row)
        assert info.node is not None
        self._placed.forget_sums()  # they have no domain for another row
        self.row_of[info.name] = row
        self.names.append(info.name)
        self.nodes.append(info.node)
        self._pods.append({})
        return row

    def _count(self, row: int, sign: int, info: PodInfo) -> None:
        self._placed.add(row, info, sign)
        self.volumes.add(row, info, sign)

    def _move(self, source: int, target: int) -> None:
        for counts in (self._placed, self.volumes):
            counts.move_row(source, target, self.pods[source].values())
        self._columns.move_row(source, target)
        self.names[target] = self.names[source]
        self.nodes[target] = self.nodes[source]
        self._pods[target] = self._pods[source]
        self.row_of[self.names[target]] = target

    def _changed_statically(self) -> None:
        self.static_generation += 1
        self._answers.clear()
        self._row_columns.clear()
        self._placed.forget_sums()
        self._placed.terms.follow_label_keys(self.label_keys, self.label_keys_version)
        self._show()

    def _show(self) -> None:
        n, resources = len(self.names), self._columns.resources
        self.allocatable = resources.allocatable[:, :n]
        self.requested = resources.requested[:, :n]
        self.non_zero_requested = resources.non_zero[:, :n]
        self.pod_count = resources.pod_count[:n]
        self.allowed_pods = resources.allowed_pods[:n]
        self.unschedulable: Mask = self._columns.unschedulable[:n]
        self._shown = self.resource_names, n
