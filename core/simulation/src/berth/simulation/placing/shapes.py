"""Nodes that could be added, and which kinds of pods none of a shape's nodes takes, however empty it is.

Nodes of one shape differ in nothing but their names. What a plugin that looks at the Node object alone says
of one of them holds for all, unless it asks for the name.

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
    """A node that could be added, at most so often; `price` is in any unit, the same for all shapes."""

    name: str
    node: Node
    most: int
    price: float | None = None


class Unfit:
    """Of each shape, which kinds of pods its nodes refuse for good. Shapes: masks bool (k,)."""

    def __init__(self, kinds: int, frameworks: Mapping[str, Framework]) -> None:
        self._none: Mask = np.zeros(kinds, dtype=bool)
        self._frameworks = frameworks
        self._unfit: dict[str, Mask] = {}

    def of(self, shape: AddableNode) -> Mask:
        """The kinds that are known to be refused by every node of the shape."""
        return self._unfit.get(shape.name, self._none)

    def note(self, shape: AddableNode, kind: int, pod: Pod, status: Status, row: int) -> None:
        """Take note of why a pod of that kind was refused, where the node of that row is of the shape."""
        if isinstance(status.error, FitError):
            verdict = status.error.diagnosis.node_status(row)
            plugin = self._frameworks[pod.spec.scheduler_name].plugins.by_name.get(verdict.plugin)
            if plugin is None or plugin.depends is not Depends.OBJECT:
                return
            if not (isinstance(plugin, NodeAffinity) and plugin.asks_for_name(pod)):
                self._unfit.setdefault(shape.name, self._none.copy())[kind] = True
