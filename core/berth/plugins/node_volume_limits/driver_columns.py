"""What CSINodes say, as columns over the nodes: each driver's limit, and where it runs."""

import numpy as np

from berth.framework.listers import Store
from berth.objects.storage import CSINode
from berth.snapshot.columns import Ints, Mask
from berth.snapshot.snapshot import Snapshot

ABSENT, UNLIMITED = -2, -1


class DriverColumns:
    """Limits by driver, kept up to date with the CSINodes and with the nodes' rows.

    Shapes: columns int64 (n,), ABSENT where the node has no such driver, UNLIMITED where it sets no limit.
    """

    def __init__(self, csi_nodes: Store[CSINode]) -> None:
        self._csi_nodes = csi_nodes
        self._nodes: Snapshot | None = None
        self._names: list[str] = []
        self._static_generation = -1
        self._position = 0
        self._columns: dict[str, Ints] = {}
        self.limited: Mask = np.zeros(0, dtype=bool)
        """Where some driver sets a limit."""

    def follow(self, nodes: Snapshot) -> None:
        """Catch up with the CSINodes and with the rows of the whole snapshot."""
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

    def limit(self, driver: str) -> Ints | None:
        """The driver's column, None where it runs nowhere.

        Shapes: result int64 (n,).
        """
        return self._columns.get(driver)

    def _start_over(self, nodes: Snapshot) -> None:
        self._names = list(nodes.names)
        self._columns = {}
        self.limited = np.zeros(len(nodes), dtype=bool)
        for csi_node in self._csi_nodes:
            row = nodes.row_of.get(csi_node.name)
            if row is not None:
                self._set_row(row, csi_node)

    def _set_row(self, row: int, csi_node: CSINode | None) -> None:
        for column in self._columns.values():
            column[row] = ABSENT
        drivers = csi_node.spec.drivers if csi_node else ()
        for driver in drivers:
            if driver.name not in self._columns:
                self._columns[driver.name] = np.full(len(self._names), ABSENT, dtype=np.int64)
            self._columns[driver.name][row] = UNLIMITED if driver.limit is None else driver.limit
        self.limited[row] = any(driver.limit is not None for driver in drivers)
