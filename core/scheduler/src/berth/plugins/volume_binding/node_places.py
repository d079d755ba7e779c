"""Which nodes volumes, classes and capacities reach: rows by rule, kept while nodes stay as they are."""

from collections.abc import Callable, Hashable

import numpy as np

from berth.framework.mirrors.listers import Store
from berth.objects.label_selector import InvalidSelectorError, Requirement, compile_selector
from berth.objects.node_selector import NodeSelector
from berth.objects.steps import Steps
from berth.objects.volumes.csi_migration import persistent_migration, translated_affinity
from berth.objects.volumes.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    TopologyTerm,
    VolumeNodeAffinity,
)
from berth.plugins.csi_node_columns import CsiNodeColumns
from berth.snapshot.columns.growing import Mask, Rows
from berth.snapshot.node_matching import IN_A_STEP, meeting, parses
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
    """Rows of the whole snapshot by rule, while its nodes stay as they are.

    Volumes and classes may have rules of any size: they are worked out in steps.
    Shapes: results intp (k,), in ascending order.
    """

    def __init__(self, nodes: Snapshot, migrated: MigratedPlugins) -> None:
        self._nodes = nodes
        self._static_generation = nodes.static_generation
        self._migrated = migrated
        self._rows: dict[Hashable, Rows] = {}

    def hold_for(self, nodes: Snapshot) -> bool:
        """Whether they are about that snapshot as it is now."""
        return self._nodes is nodes and self._static_generation == nodes.static_generation

    def reach(self, volume: PersistentVolume) -> Steps[Rows]:
        """The nodes that the volume's node affinity allows."""
        return self._allowed(volume.spec.node_affinity)

    def reach_migrated(self, volume: PersistentVolume) -> Steps[Rows]:
        """The same, with topology labels as the driver gives them wherever it serves the volume."""
        in_tree, found = (yield from self.reach(volume)), persistent_migration(volume)
        if found is None:
            return in_tree
        by_driver = yield from self._allowed(translated_affinity(volume, found[0]))
        self._migrated.follow(self._nodes)
        taken_over = self._migrated.on(found[0].plugin)
        if taken_over is None:
            return in_tree
        return np.union1d(by_driver[taken_over[by_driver]], in_tree[~taken_over[in_tree]])

    def topology(self, terms: tuple[TopologyTerm, ...]) -> Steps[Rows]:
        """The nodes that a class's allowed topologies name; none named means all of them."""
        return self._remembered(terms, lambda: self._topology(terms))

    def segment(self, capacity: CSIStorageCapacity) -> Steps[Rows]:
        """The nodes that the capacity is there for."""
        key = ("capacity", capacity.key, capacity.metadata.resource_version, capacity.uid)
        return self._remembered(key, lambda: self._segment(capacity))

    def _allowed(self, affinity: VolumeNodeAffinity | None) -> Steps[Rows]:
        required = affinity.required if affinity else None
        return self._remembered(required, lambda: self._required(required))

    def _remembered(self, key: Hashable, compute: Callable[[], Steps[Mask]]) -> Steps[Rows]:
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = np.flatnonzero((yield from compute()))
        return rows

    def _required(self, required: NodeSelector | None) -> Steps[Mask]:
        """Unlike a pod's affinity, a volume's is asked about labels alone: all it says of fields holds."""
        mask = np.full(len(self._nodes), required is None)
        for number, term in enumerate(required.node_selector_terms if required else (), 1):
            if not term.empty and parses(term):
                mask |= yield from meeting(self._nodes, term.match_expressions)
            if number % IN_A_STEP == 0:
                yield
        return mask

    def _topology(self, terms: tuple[TopologyTerm, ...]) -> Steps[Mask]:
        mask = np.full(len(self._nodes), not terms)
        for number, term in enumerate(terms, 1):
            if term.match_label_expressions:
                asked = (Requirement(r.key, "In", r.values) for r in term.match_label_expressions)
                mask |= yield from meeting(self._nodes, asked)
            if number % IN_A_STEP == 0:
                yield
        return mask

    def _segment(self, capacity: CSIStorageCapacity) -> Steps[Mask]:
        try:
            selector = compile_selector(capacity.node_topology)
        except InvalidSelectorError:
            return np.zeros(len(self._nodes), dtype=bool)
        if selector.nothing:
            return np.zeros(len(self._nodes), dtype=bool)
        mask = yield from meeting(self._nodes, selector.requirements)
        return mask
