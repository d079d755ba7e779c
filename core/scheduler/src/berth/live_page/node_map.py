"""Nodes for the heat map: names and groups, which seldom change, and how much of each resource is taken.

All amounts are made from the snapshot's columns, without a Python object for each node.
"""

import hashlib

import msgspec
import numpy as np

from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.node_tree import REGION, ZONE
from berth.snapshot.snapshot import Snapshot

MAX_NODES = 20_000
MAX_RESOURCES = 8
MAX_GROUPS = 250
NOT_OFFERED = 255
MAX_SHARE = 200
POOLS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
GROUPINGS = (
    (ZONE, "zone"),
    (REGION, "region"),
    *((label, "node pool") for label in POOLS),
    ("node.kubernetes.io/instance-type", "instance type"),
)


class Grouping(msgspec.Struct, frozen=True, gc=False):
    """A way to divide the nodes: `of` has the number of each node's value, that of `values` for others.

    Shapes: of little-endian uint16 (n,), base64 in JSON.
    """

    name: str
    label: str
    values: list[str]
    of: bytes


class MappedNodes(msgspec.Struct, frozen=True, gc=False):
    """Which node each place of the map is."""

    names: list[str]
    groupings: list[Grouping]


class ResourceShare(msgspec.Struct, frozen=True, gc=False):
    """How much of a resource is requested of what the nodes offer; a cordoned node has a share and no sum.

    Shapes: shares uint8 (n,), percent up to 200, 255 where a node offers none; base64 in JSON.
    Units: milli-CPU, bytes, whole units of others.
    """

    name: str
    allocatable: float
    requested: float
    shares: bytes


class NodeMap:
    """The nodes of a snapshot; `version` is another one whenever a place of the map is another node."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._generation = -1
        self.version = ""
        self.nodes = b""
        """`MappedNodes` in JSON."""

    def refresh(self) -> None:
        """Follow the snapshot. Cost: O(nodes) after something besides pods changed, O(1) otherwise."""
        if self._generation == self._snapshot.static_generation:
            return
        self._generation = self._snapshot.static_generation
        names = self._snapshot.names[:MAX_NODES]
        body = msgspec.json.encode(MappedNodes(names, self._groupings(len(names))))
        version = version_of(body)
        if version != self.version:
            self.version, self.nodes = version, body

    def _groupings(self, n: int) -> list[Grouping]:
        found = (self._grouping(label, name, n) for label, name in GROUPINGS)
        return [grouping for grouping in found if grouping is not None]

    def _grouping(self, label: str, name: str, n: int) -> Grouping | None:
        column = self._snapshot.label(label)
        if not column.index:
            return None
        numbers, counts = np.unique(column.ids[:n], return_counts=True)
        # The largest groups are shown; the others, and nodes without the label, are one.
        shown = [number for number in numbers[np.argsort(-counts, kind="stable")].tolist() if number >= 0]
        shown = sorted(shown[:MAX_GROUPS], key=lambda number: column.values[number])
        places = np.full(len(column.values) + 1, len(shown), dtype="<u2")
        places[shown] = np.arange(len(shown))
        # A node without the label has the number -1: the last place.
        return Grouping(
            name, label, [column.values[number] for number in shown], places[column.ids[:n]].tobytes()
        )

    def cordoned(self) -> bytes:
        """A bit for each node, set where it is unschedulable; the first node's is the highest of a byte."""
        return np.packbits(self._snapshot.unschedulable[:MAX_NODES]).tobytes()

    def resources(self) -> list[ResourceShare]:
        """CPU, memory and pods, then the resources that most nodes offer, `MAX_RESOURCES` in all."""
        nodes = self._snapshot
        counted = ~nodes.unschedulable
        basic = [resource(name, nodes.offered(name), nodes.held(name), counted) for name in (CPU, MEMORY)]
        pods = resource(PODS, nodes.allowed_pods, nodes.pod_count, counted)
        others = [name for name in nodes.resource_names if name not in (CPU, MEMORY)]
        offering = {name: self._offering(name) for name in others}
        # Ephemeral storage is on every node, and seldom requested: devices are of more interest.
        others.sort(key=lambda name: (name == EPHEMERAL_STORAGE, -offering[name], name))
        shown = [name for name in others if offering[name]][: MAX_RESOURCES - 3]
        more = (resource(name, nodes.offered(name), nodes.held(name), counted) for name in shown)
        return [*basic, pods, *more]

    def _offering(self, name: str) -> int:
        offered = self._snapshot.offered(name)
        return 0 if offered is None else int(np.count_nonzero(offered))


def version_of(nodes: bytes) -> str:
    """The version of nodes by what is in their JSON."""
    return hashlib.blake2b(nodes, digest_size=8).hexdigest()


def resource(name: str, offered: Ints | None, held: Ints, counted: Mask) -> ResourceShare:
    """The shares of one resource; its sums are those of the nodes that are counted.

    Shapes: offered, held int64 (n,), counted bool (n,).
    """
    if offered is None:
        offered = np.zeros_like(held)
    # In floats: what nodes and pods name may be as large as an int64, and a hundred times that is not one.
    share = np.rint(held * 100.0 / np.maximum(offered, 1)).clip(0, MAX_SHARE).astype(np.uint8)
    share[offered <= 0] = NOT_OFFERED
    return ResourceShare(
        name,
        float(offered.sum(dtype=np.float64, where=counted)),
        float(held.sum(dtype=np.float64, where=counted)),
        share[:MAX_NODES].tobytes(),
    )
