"""Nodes that could be added, and the kinds of pods that even an empty node of a shape rejects.

Nodes of one shape differ in their names alone. The verdict of a plugin that reads the Node object alone
holds for all of them, unless it reads the name.

Called by: growing_cluster.
"""

from collections.abc import Mapping

import msgspec
import numpy as np

from berth.framework.attempts.diagnosis import FitError
from berth.framework.interface import Depends
from berth.framework.runtime import Framework
from berth.framework.status import Status
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.plugins.node_affinity import NodeAffinity
from berth.snapshot.columns.growing import Mask


class AddableNode(msgspec.Struct, frozen=True):
    """A node that could be added, at most `most` times; `price` is in any unit, the same for all shapes."""

    name: str
    node: Node
    most: int
    price: float | None = None


class Unfit:
    """The kinds of pods that each shape's nodes reject for good. Shapes: masks bool (k,)."""

    def __init__(self, kinds: int, frameworks: Mapping[str, Framework]) -> None:
        self._none: Mask = np.zeros(kinds, dtype=bool)
        self._frameworks = frameworks
        self._unfit: dict[str, Mask] = {}

    def of(self, shape: AddableNode) -> Mask:
        """The kinds that every node of the shape is known to reject."""
        return self._unfit.get(shape.name, self._none)

    def note(self, shape: AddableNode, kind: int, pod: Pod, status: Status, row: int) -> None:
        """Record the rejection of a pod of that kind by the node of that row, which is of the shape."""
        if isinstance(status.error, FitError):
            verdict = status.error.diagnosis.node_status(row)
            plugin = self._frameworks[pod.spec.scheduler_name].plugins.by_name.get(verdict.plugin)
            if plugin is None or plugin.depends is not Depends.OBJECT:
                return
            if not (isinstance(plugin, NodeAffinity) and plugin.asks_for_name(pod)):
                self._unfit.setdefault(shape.name, self._none.copy())[kind] = True
