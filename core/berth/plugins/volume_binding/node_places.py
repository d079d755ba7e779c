"""Which nodes volumes, classes and capacities reach: rows by rule, kept while nodes stay as they are."""

from collections.abc import Callable, Hashable, Iterable

import numpy as np

from berth.framework.listers import Store
from berth.objects.csi_migration import persistent_migration, translated_affinity
from berth.objects.label_selector import InvalidSelectorError, Requirement, compile_selector
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.objects.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    TopologyTerm,
    VolumeNodeAffinity,
)
from berth.plugins.csi_node_columns import CsiNodeColumns
from berth.snapshot.columns import Mask, Rows
from berth.snapshot.node_matching import matching_term, parses
from berth.snapshot.snapshot import Snapshot


class MigratedPlugins(CsiNodeColumns):
    """Where CSI drivers have taken over which in-tree volume plugins."""

    def __init__(self, csi_nodes: Store[CSINode]) -> None:
        super().__init__(csi_nodes)
        self._clear(0)

    def on(self, plugin: str) -> Mask | None:
        """The nodes where the plugin was taken over, None where there are none.

        Shapes: result bool (n,).
        """
        return self._columns.get(plugin)

    def _clear(self, n: int) -> None:
        self._n = n
        self._columns: dict[str, Mask] = {}

    def _set_row(self, row: int, csi_node: CSINode | None) -> None:
        for column in self._columns.values():
            column[row] = False
        for plugin in csi_node.migrated_plugins if csi_node else ():
            if plugin not in self._columns:
                self._columns[plugin] = np.zeros(self._n, dtype=bool)
            self._columns[plugin][row] = True


class NodePlaces:
    """Rows of the whole snapshot by rule.

    Shapes: results intp (k,), in ascending order.
    """

    def __init__(self, csi_nodes: Store[CSINode]) -> None:
        self._migrated = MigratedPlugins(csi_nodes)
        self._rows: dict[Hashable, Rows] = {}
        self._nodes = Snapshot()
        self._static_generation = -1
        self.instant = object()
        """Another object whenever the nodes changed, and with them what rules say of them."""

    def follow(self, nodes: Snapshot) -> None:
        """Look at the whole snapshot as it is now."""
        self._migrated.follow(nodes)
        if self._nodes is not nodes or self._static_generation != nodes.static_generation:
            self._nodes, self._static_generation = nodes, nodes.static_generation
            self._rows.clear()
            self.instant = object()

    def reach(self, volume: PersistentVolume) -> Rows:
        """The nodes that the volume's node affinity allows."""
        return self._allowed(volume.spec.node_affinity)

    def reach_migrated(self, volume: PersistentVolume) -> Rows:
        """The same, with topology labels as the driver gives them wherever it serves the volume."""
        found = persistent_migration(volume)
        taken_over = None if found is None else self._migrated.on(found[0].plugin)
        if found is None or taken_over is None:
            return self.reach(volume)
        by_driver, in_tree = self._allowed(translated_affinity(volume, found[0])), self.reach(volume)
        return np.union1d(by_driver[taken_over[by_driver]], in_tree[~taken_over[in_tree]])

    def topology(self, terms: tuple[TopologyTerm, ...]) -> Rows:
        """The nodes that a class's allowed topologies name; none named means all of them."""
        return self._remembered(terms, lambda: self._topology(terms))

    def segment(self, capacity: CSIStorageCapacity) -> Rows:
        """The nodes that the capacity is there for."""
        key = ("capacity", capacity.key, capacity.metadata.resource_version, capacity.uid)
        return self._remembered(key, lambda: self._segment(capacity))

    def _allowed(self, affinity: VolumeNodeAffinity | None) -> Rows:
        required = affinity.required if affinity else None
        return self._remembered(required, lambda: self._required(required))

    def _remembered(self, key: Hashable, compute: Callable[[], Mask]) -> Rows:
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = np.flatnonzero(compute())
        return rows

    def _required(self, required: NodeSelector | None) -> Mask:
        """Unlike a pod's affinity, a volume's is asked about labels alone: all it says of fields holds."""
        if required is None:
            return np.ones(len(self._nodes), dtype=bool)
        mask = np.zeros(len(self._nodes), dtype=bool)
        for term in required.node_selector_terms:
            if not term.empty and parses(term):
                labels = NodeSelectorTerm(term.match_expressions)
                mask |= True if labels.empty else matching_term(self._nodes, labels)
        return mask

    def _topology(self, terms: tuple[TopologyTerm, ...]) -> Mask:
        mask = np.full(len(self._nodes), not terms)
        for term in terms:
            if term.match_label_expressions:
                mask |= self._all_hold(
                    Requirement(r.key, "In", r.values) for r in term.match_label_expressions
                )
        return mask

    def _segment(self, capacity: CSIStorageCapacity) -> Mask:
        try:
            selector = compile_selector(capacity.node_topology)
        except InvalidSelectorError:
            return np.zeros(len(self._nodes), dtype=bool)
        if selector.nothing:
            return np.zeros(len(self._nodes), dtype=bool)
        return self._all_hold(selector.requirements)

    def _all_hold(self, requirements: Iterable[Requirement]) -> Mask:
        n = len(self._nodes)
        mask = np.ones(n, dtype=bool)
        for requirement in requirements:
            mask &= self._nodes.label(requirement.key).matching(requirement, n)
        return mask
