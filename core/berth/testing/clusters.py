"""Small clusters as the tables that plugins look at."""

from collections.abc import Iterable

from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot


def table(nodes: Iterable[Node], placed: Iterable[Pod] = ()) -> Snapshot:
    """The nodes with their pods, in the order given; pods of nodes that are not there are left out."""
    infos = {}
    for node in nodes:
        info = infos[node.name] = NodeInfo(node.name)
        info.set_node(node)
    for pod in placed:
        if pod.node_name in infos:
            infos[pod.node_name].add_pod(PodInfo(pod))
    snapshot = Snapshot()
    snapshot.take(infos.values())
    return snapshot
