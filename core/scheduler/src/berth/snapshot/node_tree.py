"""Nodes by zone, and the order in which a search goes through them: one of each zone in turn.

Only a search that stops early has to know it. Source: pkg/scheduler/backend/cache/node_tree.go (Kubernetes
v1.36).
"""

from collections.abc import Mapping
from itertools import chain, zip_longest

from berth.objects.node import Node

LEGACY_REGION = "failure-domain.beta.kubernetes.io/region"
LEGACY_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"


def zone_key(labels: Mapping[str, str]) -> str:
    """Region and zone as one text, empty where the node names neither; a legacy label counts first."""
    region = labels.get(LEGACY_REGION, labels.get(REGION, ""))
    zone = labels.get(LEGACY_ZONE, labels.get(ZONE, ""))
    return f"{region}:\0:{zone}" if region or zone else ""


class NodeTree:
    """The names of the nodes that exist, by zone, both in the order of their arrival.

    `version` changes with the order. Cost: put and remove O(1), names O(nodes).
    """

    __slots__ = ("_zone_of", "_zones", "version")

    def __init__(self) -> None:
        self.version = 0
        self._zones: dict[str, dict[str, None]] = {}
        self._zone_of: dict[str, str] = {}

    def put(self, node: Node) -> None:
        """Take a node in; one that changed zones goes to the end of its new one."""
        zone = zone_key(node.labels)
        if self._zone_of.get(node.name) == zone:
            return
        self.remove(node.name)
        self._zones.setdefault(zone, {})[node.name] = None
        self._zone_of[node.name] = zone
        self.version += 1

    def remove(self, name: str) -> None:
        """Take a node out, if it is here; a zone goes with its last node."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        del self._zones[zone][name]
        if not self._zones[zone]:
            del self._zones[zone]
        self.version += 1

    def names(self) -> list[str]:
        """The first node of each zone, then the second of each, and so on."""
        return [name for name in chain.from_iterable(zip_longest(*self._zones.values())) if name is not None]
