"""Columns over the nodes made of CSINodes, which are named like their nodes."""

from abc import ABC, abstractmethod

from berth.framework.mirrors.listers import Store
from berth.objects.volumes.storage import CSINode
from berth.snapshot.snapshot import Snapshot


class CsiNodeColumns(ABC):
    """Follows the CSINodes that changed and the rows of the whole snapshot."""

    def __init__(self, csi_nodes: Store[CSINode]) -> None:
        self._csi_nodes = csi_nodes
        self._nodes: Snapshot | None = None
        self._names: list[str] = []
        self._static_generation = -1
        self._position = 0

    def follow(self, nodes: Snapshot) -> None:
        """Catch up with both. Cost: a step for each CSINode that changed, for all where rows moved."""
        changed = self._csi_nodes.changes.since(self._position)
        self._position = self._csi_nodes.changes.end
        if self._nodes is not nodes or self._static_generation != nodes.static_generation:
            self._nodes, self._static_generation = nodes, nodes.static_generation
            if self._names != nodes.names:
                changed = None
        if changed is None:
            self._start_over(nodes)
            return
        for name in changed:
            row = nodes.row_of.get(name)
            if row is not None:
                self._set_row(row, self._csi_nodes.get(name))

    def _start_over(self, nodes: Snapshot) -> None:
        self._names = list(nodes.names)
        self._clear(len(nodes))
        for csi_node in self._csi_nodes:
            row = nodes.row_of.get(csi_node.name)
            if row is not None:
                self._set_row(row, csi_node)

    @abstractmethod
    def _clear(self, n: int) -> None:
        """Begin with n nodes that have no CSINode."""

    @abstractmethod
    def _set_row(self, row: int, csi_node: CSINode | None) -> None:
        """Write one node's row, anew or for the first time."""
