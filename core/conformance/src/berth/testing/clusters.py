"""Small clusters, as the tables that plugins look at and as a cache."""

from collections.abc import Iterable

from berth.cache.cache import Cache
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
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


def cached(nodes: Iterable[Node], placed: Iterable[Pod] = ()) -> tuple[Cache, Snapshot]:
    """A cache of the nodes with their pods, and a snapshot of it for `Cache.update_snapshot`."""
    cache, snapshot = Cache(), Snapshot()
    for node in nodes:
        cache.add_node(node)
    for pod in placed:
        cache.add_pod(pod)
    cache.update_snapshot(snapshot)
    return cache, snapshot
