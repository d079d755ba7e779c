"""What nodes say of themselves, and what their pods hold of them, a row a node.

Called by: the snapshot, which says which node is on which row. Each group of columns follows the same steps:
a row is written, moves into the place of one that goes, or is emptied, and all grow together.
"""

from itertools import islice

import numpy as np

from berth.objects.node import Node
from berth.objects.taint import Taint
from berth.snapshot.columns.flag_columns import FlagColumns
from berth.snapshot.columns.growing import Mask, grown
from berth.snapshot.columns.image_columns import ImageColumns
from berth.snapshot.columns.label_columns import LabelColumns
from berth.snapshot.columns.port_columns import PortColumns
from berth.snapshot.columns.resource_columns import ResourceColumns

FIRST_CAPACITY = 64
MAX_FEATURES = 8_192
"""This many of the features that a node declares count: a kubelet declares some ten."""


def says_the_same(old: Node, new: Node) -> bool:
    """Whether a node's new version says nothing new, as most do: a kubelet's sign of life."""
    return (
        old.status == new.status
        and old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
    )


class NodeColumns:
    """Columns of at least as many rows as there are nodes; `nodes` are the snapshot's own, by row.

    Shapes: unschedulable bool (capacity,).
    """

    __slots__ = (
        "_groups",
        "capacity",
        "features",
        "images",
        "labels",
        "ports",
        "resources",
        "taints",
        "unschedulable",
    )

    def __init__(self, nodes: list[Node]) -> None:
        self.capacity = FIRST_CAPACITY
        self.resources = ResourceColumns(self.capacity)
        self.labels = LabelColumns(self.capacity, nodes)
        self.taints = FlagColumns[Taint](self.capacity)
        self.ports = PortColumns(self.capacity)
        self.features = FlagColumns[str](self.capacity)
        self.images = ImageColumns(self.capacity)
        self.unschedulable: Mask = np.zeros(self.capacity, dtype=bool)
        self._groups = (self.resources, self.labels, self.taints, self.ports, self.features, self.images)

    def set_node(self, row: int, before: Node | None, node: Node) -> None:
        """Write what a node says of itself, where it differs from what it said before."""
        self.unschedulable[row] = node.spec.unschedulable
        if before is None or before.metadata.labels != node.metadata.labels:
            self.labels.set_row(row, node.metadata.labels)
        if before is None or before.spec.taints != node.spec.taints:
            self.taints.set_row(row, tuple(dict.fromkeys(node.spec.taints)))
        if before is None or before.status.declared_features != node.status.declared_features:
            declared = islice(node.status.declared_features, MAX_FEATURES)
            self.features.set_row(row, tuple(dict.fromkeys(declared)))
        if before is None or before.status.images != node.status.images:
            self.images.set_row(row, node)

    def drop_row(self, row: int) -> None:
        """Empty a row."""
        for group in self._groups:
            group.drop_row(row)

    def move_row(self, source: int, target: int) -> None:
        """Put a row in the place of an empty one."""
        for group in self._groups:
            group.move_row(source, target)
        self.unschedulable[target] = self.unschedulable[source]

    def grow(self, capacity: int) -> None:
        """Make room for so many rows."""
        self.capacity = capacity
        for group in self._groups:
            group.grow(capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
