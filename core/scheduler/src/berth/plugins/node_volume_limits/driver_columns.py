"""What CSINodes say of drivers, as columns over the nodes: each driver's limit, and where it runs."""

import numpy as np

from berth.framework.mirrors.listers import Store
from berth.objects.volumes.storage import CSINode
from berth.plugins.csi_node_columns import CsiNodeColumns
from berth.snapshot.columns.growing import Ints, Mask

ABSENT, UNLIMITED = -2, -1


class DriverColumns(CsiNodeColumns):
    """Limits by driver.

    Shapes: columns int64 (n,), ABSENT where the node has no such driver, UNLIMITED where it sets no limit.
    """

    def __init__(self, csi_nodes: Store[CSINode]) -> None:
        super().__init__(csi_nodes)
        self._clear(0)

    def limit(self, driver: str) -> Ints | None:
        """The driver's column, None where it runs nowhere.

        Shapes: result int64 (n,).
        """
        return self._columns.get(driver)

    def _clear(self, n: int) -> None:
        self._columns: dict[str, Ints] = {}
        self.limited: Mask = np.zeros(n, dtype=bool)
        """Where some driver sets a limit."""

    def _set_row(self, row: int, csi_node: CSINode | None) -> None:
        for column in self._columns.values():
            column[row] = ABSENT
        drivers = csi_node.spec.drivers if csi_node else ()
        for driver in drivers:
            if driver.name not in self._columns:
                self._columns[driver.name] = np.full(self.limited.size, ABSENT, dtype=np.int64)
            self._columns[driver.name][row] = UNLIMITED if driver.limit is None else driver.limit
        self.limited[row] = any(driver.limit is not None for driver in drivers)
