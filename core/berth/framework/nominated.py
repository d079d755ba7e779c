"""Nodes with the pods that were promised them thought to be there already.

Every cycle asks whether its pod fits beside them, so all such nodes are asked about at once.

Source: spec/core.md 2.14, 4.7.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from berth.framework.handle import Nominator
from berth.objects.pod import Pod
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

MOST_KEPT = 10_000


class NominatedPods:
    """The nominator's pods with what they would hold, worked out once for each version of a pod."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._infos: dict[str, PodInfo] = {}

    def beside(self, pod: Pod, nodes: Snapshot) -> dict[int, list[PodInfo]]:
        """The pods of no lower priority that were promised a node, by its row; the pod itself is none."""
        found: dict[int, list[PodInfo]] = {}
        if len(self._infos) > MOST_KEPT:
            self._infos.clear()
        for name in self._nominator.nodes_with_nominations():
            row = nodes.row_of.get(name)
            if row is not None and (others := self.on_node(pod, name)):
                found[row] = others
        return found

    def on_node(self, pod: Pod, name: str) -> list[PodInfo]:
        """Those that were promised that node."""
        return [
            self._info(other)
            for other in self._nominator.nominated_pods_for_node(name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def _info(self, pod: Pod) -> PodInfo:
        known = self._infos.get(pod.uid)
        if known is None or known.pod is not pod:
            known = self._infos[pod.uid] = PodInfo(pod)
        return known


def with_pods(nodes: Snapshot, added: Mapping[int, Sequence[PodInfo]]) -> Snapshot:
    """The rows that get pods added, in that order, as a table of what is on them then.

    Counts over other nodes (`placed`) stay as they are: for plugins that look at one node at a time.
    """
    rows = np.fromiter(added, dtype=np.intp, count=len(added))
    table = nodes.view(rows)
    table.pods = [nodes.pods[row] | {info.uid: info for info in infos} for row, infos in added.items()]
    table.ports = [{port for info in pods.values() for port in info.ports} for pods in table.pods]
    index = {name: i for i, name in enumerate(nodes.resource_names)}
    for i, infos in enumerate(added.values()):
        for info in infos:
            for name, amount in info.requests.items():
                # What no node offers and no placed pod holds has no column, and is there for nobody.
                if name in index:
                    table.requested[index[name], i] += amount
            table.non_zero_requested[:, i] += info.non_zero
        table.pod_count[i] += len(infos)
    return table
