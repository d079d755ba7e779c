"""Which kinds of pods a node may have enough resources for, all in one operation.

NodeResourcesFit rejects a pod that requests more than is free; a kind's requests do not
change, so a node is compared with all kinds at once, and those that do not fit are not tried.

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
    """The requests of each kind. Shapes: k kinds, each by one of its pods."""

    def __init__(self, pods: Sequence[Pod], frameworks: Mapping[str, Framework]) -> None:
        demands = [_demanded(pod, frameworks[pod.spec.scheduler_name]) for pod in pods]
        counts = Counter(name for each in demands for name in each or ())
        self._least: dict[str, Ints] = {
            name: np.array([(each or {}).get(name, 0) for each in demands], dtype=np.int64)
            for name, _ in counts.most_common(MAX_RESOURCES)
        }
        self._unchecked: Mask = np.array([each is None for each in demands], dtype=bool)

    def on(self, nodes: Snapshot, row: int) -> Mask:
        """The kinds that the node may have enough resources for. Shapes: result bool (k,)."""
        fits: Mask = np.full(self._unchecked.size, nodes.pod_count[row] < nodes.allowed_pods[row])
        for name, least in self._least.items():
            offered = nodes.offered(name)
            free = 0 if offered is None else max(0, int(offered[row] - nodes.held(name)[row]))
            fits &= least <= free
        return fits | self._unchecked


def _demanded(pod: Pod, framework: Framework) -> Units | None:
    """The free resources without which the pod is rejected; None without NodeResourcesFit."""
    for plugin in framework.plugins.filter:
        if isinstance(plugin, NodeResourcesFit):
            return plugin.demanded(pod)
    return None
