"""Which kinds of pods a node may have room for, all of them in one operation.

NodeResourcesFit turns down a pod that requests more than is left; what it demands of a pod's kind does not
change, so a node that fills up is compared with all kinds at once, and those that do not fit are not asked.

Called by: growing_cluster.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import Units
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.snapshot import Snapshot

MAX_RESOURCES: Final = 16
"""Those that most kinds request. A pod that is short of another one is turned down when it is tried."""


class Room:
    """What pods of each kind demand of a node. Shapes: k kinds, each by one of its pods."""

    def __init__(self, pods: Sequence[Pod], frameworks: Mapping[str, Framework]) -> None:
        demands = [_demanded(pod, frameworks[pod.spec.scheduler_name]) for pod in pods]
        counts = Counter(name for each in demands for name in each or ())
        self._least: dict[str, Ints] = {
            name: np.array([(each or {}).get(name, 0) for each in demands], dtype=np.int64)
            for name, _ in counts.most_common(MAX_RESOURCES)
        }
        self._unchecked: Mask = np.array([each is None for each in demands], dtype=bool)

    def on(self, nodes: Snapshot, row: int) -> Mask:
        """The kinds that the node is not sure to have too little room for. Shapes: result bool (k,)."""
        fits: Mask = np.full(self._unchecked.size, nodes.pod_count[row] < nodes.allowed_pods[row])
        for name, least in self._least.items():
            offered = nodes.offered(name)
            free = 0 if offered is None else max(0, int(offered[row] - nodes.held(name)[row]))
            fits &= least <= free
        return fits | self._unchecked


def _demanded(pod: Pod, framework: Framework) -> Units | None:
    """What a node must have left, or the pod is turned down; None where the profile does not say."""
    for plugin in framework.plugins.filter:
        if isinstance(plugin, NodeResourcesFit):
            return plugin.demanded(pod)
    return None
