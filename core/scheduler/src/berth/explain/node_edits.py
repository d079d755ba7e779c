"""Changes of nodes that would let a pod in: a label, a cordon taken back, one node more."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

import msgspec

from berth.explain.edits import escaped, untolerated
from berth.explain.supposed import SUPPOSED_NAME
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.devices import ResourceSlice
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import scaled
from berth.objects.resource_names import CPU, MEMORY
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

HOSTNAME = "kubernetes.io/hostname"
NEW_NODE = "new-node"
"""With a number behind it where there is a node of that name."""
SUPPOSED = "supposed"
"""The UID of changed nodes: under its own an extender would be sent the node that there is."""
CORDONED = "node.kubernetes.io/unschedulable"

replace = msgspec.structs.replace


class NodeEdit(NamedTuple):
    """One change: the node as it is then, which is new where `patch` adds all of it."""

    kind: str
    sentence: str
    patch: tuple[Mapping[str, Any], ...]
    node: Node
    slices: tuple[ResourceSlice, ...] = ()
    """The devices of a new node, as its drivers will publish them."""


def with_labels(pod: Pod, node: Node) -> Iterator[NodeEdit]:
    """The labels that the pod's nodeSelector wants."""
    selector = pod.spec.node_selector or {}
    missing = {key: value for key, value in selector.items() if node.metadata.labels.get(key) != value}
    if not missing:
        return
    labels = {**node.metadata.labels, **missing}
    shown = ", ".join(f"{key}={value}" for key, value in missing.items())
    patch = tuple(
        {"op": "add", "path": f"/metadata/labels/{escaped(key)}", "value": value}
        for key, value in missing.items()
    )
    changed = replace(node, metadata=replace(node.metadata, uid=SUPPOSED, labels=labels))
    yield NodeEdit("NodeLabel", f"label node {node.name} {shown}", patch, changed)


def uncordoned(pod: Pod, node: Node) -> Iterator[NodeEdit]:
    """The node without its cordon, and without the taint that comes with it."""
    del pod
    if not node.spec.unschedulable:
        return
    taints = tuple(taint for taint in node.spec.taints if taint.key != CORDONED)
    metadata = replace(node.metadata, uid=SUPPOSED)
    changed = replace(node, metadata=metadata, spec=replace(node.spec, unschedulable=False, taints=taints))
    patch = ({"op": "replace", "path": "/spec/unschedulable", "value": False},)
    yield NodeEdit("Uncordon", f"uncordon node {node.name}", patch, changed)


NODE_EDITORS = {"NodeAffinity": with_labels, "NodeUnschedulable": uncordoned}
"""By the plugin that turns the node down."""


Devices = Mapping[str, Sequence[ResourceSlice]]
"""Devices that only one node reaches, by its name; others are where they are whatever nodes there are."""
NO_DEVICES: Devices = {}


def devices_of(slices: Iterable[ResourceSlice]) -> Devices:
    """The devices of each node."""
    found: dict[str, list[ResourceSlice]] = {}
    for each in slices:
        if each.spec.node_name:
            found.setdefault(each.spec.node_name, []).append(each)
    return found


def new_nodes(
    pod: Pod,
    nodes: Snapshot,
    most: int,
    places: Sequence[Mapping[str, str]] = (),
    devices: Devices = NO_DEVICES,
) -> Iterator[NodeEdit]:
    """Empty nodes of the shapes that there are, the largest of those that let the pod in first.

    After them the same with the labels of each of these places. Nodes with `devices` come before others.
    """
    shapes: dict[tuple[Any, ...], Node] = {}
    ordered = sorted(nodes.nodes, key=lambda node: (node.name not in devices, *_preference(pod, node)))
    for node in ordered:
        shapes.setdefault((_shape(node), _offer(devices.get(node.name, ()))), node)
        if len(shapes) >= most:
            break
    names = chain((NEW_NODE,), (f"{NEW_NODE}-{i}" for i in count(2)))
    name = next(name for name in names if name not in nodes.row_of)
    for place in ({}, *places):
        for node in shapes.values():
            yield _new_node(name, node, place, devices.get(node.name, ()))


def _offer(slices: Sequence[ResourceSlice]) -> tuple[tuple[str, int], ...]:
    """How many devices of which driver, slice by slice."""
    return tuple(sorted((each.spec.driver, len(each.spec.devices)) for each in slices))


def _preference(pod: Pod, node: Node) -> tuple[Any, ...]:
    cpu, memory = (scaled(name, node.status.allocatable.get(name, 0)) for name in (CPU, MEMORY))
    selector = pod.spec.node_selector or {}
    unmatched = sum(node.metadata.labels.get(key) != value for key, value in selector.items())
    return node.spec.unschedulable, len(untolerated(pod, node)), unmatched, -cpu, -memory, node.name


def _shape(node: Node) -> tuple[Any, ...]:
    labels = tuple(sorted((k, v) for k, v in node.metadata.labels.items() if k != HOSTNAME))
    return tuple(sorted(node.status.allocatable.items())), node.spec.taints, labels


def _new_node(name: str, like: Node, place: Mapping[str, str], devices: Sequence[ResourceSlice]) -> NodeEdit:
    labels = {**like.metadata.labels, HOSTNAME: name, **place}
    taints = tuple(taint for taint in like.spec.taints if taint.key != CORDONED)
    node = replace(
        like,
        metadata=ObjectMeta(name=name, uid=name, labels=labels),
        spec=replace(like.spec, unschedulable=False, taints=taints),
    )
    written = msgspec.to_builtins(node)
    allocatable = list(like.status.allocatable.items())[:4]
    amounts = ", ".join(f"{amount} {resource}" for resource, amount in allocatable)
    there = " and ".join(f"{key}={value}" for key, value in place.items())
    drivers = ", ".join(sorted({each.spec.driver for each in devices}))
    offered = f"{amounts}; devices of {drivers}" if drivers else amounts
    sentence = f"add a node like {like.name} ({offered}){f' with {there}' if there else ''}"
    patch = ({"op": "add", "path": "", "value": written},)
    return NodeEdit("NewNode", sentence, patch, node, tuple(_on_node(name, each) for each in devices))


def _on_node(node: str, devices: ResourceSlice) -> ResourceSlice:
    """The same devices in a pool of the new node's."""
    name = f"{SUPPOSED_NAME} {devices.name}"
    pool = replace(devices.spec.pool, name=f"{SUPPOSED_NAME} {devices.spec.pool.name}")
    spec = replace(devices.spec, node_name=node, pool=pool)
    return replace(devices, metadata=ObjectMeta(name=name, uid=name), spec=spec)


class Exchanged:
    """A snapshot in which one node is as it would be, or is there in addition, while the block runs.

    The pods of the UIDs `without` are not on it then.
    """

    def __init__(self, nodes: Snapshot, node: Node, without: Collection[str] = ()) -> None:
        self._nodes = nodes
        self._without = without
        row = nodes.row_of.get(node.name)
        self._before = None if row is None else nodes.nodes[row]
        self._node = node
        self._left: list[PodInfo] = []

    def __enter__(self) -> Snapshot:
        """The snapshot, changed."""
        here = {} if self._before is None else self._nodes.pods[self._nodes.row_of[self._node.name]]
        self._left = [here[uid] for uid in self._without]
        self._take(self._node, -1)
        return self._nodes

    def __exit__(self, *_: object) -> None:
        """The snapshot as it was."""
        if self._before is None:
            self._nodes.drop(self._node.name)
        else:
            self._take(self._before, 1)

    def _take(self, node: Node, sign: int) -> None:
        """Put the node into the snapshot, without (-1) or again with (1) the pods that are left out."""
        info = NodeInfo(node.name)
        info.set_node(node)
        if self._before is not None:
            for pod in self._nodes.pods[self._nodes.row_of[node.name]].values():
                info.add_pod(pod)
            # The snapshot counts these already.
            info.unseen = []
            for pod in self._left:
                if sign > 0:
                    info.add_pod(pod)
                else:
                    info.remove_pod(pod.uid)
        self._nodes.take([info])
