"""The plugin's mirror of the cluster: what the scheduler's state stream said, up to one generation.

(nothing) --commit--> (epoch, generation) --delta--> (epoch, later generation)
    ^                        |
    +------- SyncError ------+        a mirror that can't follow holds nothing, never something wrong
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from berth_plugin_proto import state_pb2 as pb
from berth_sdk.errors import SyncError
from berth_sdk.objects import Node, Pod, decode_node, decode_pod
from berth_sdk.outcomes import PodStage


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod that counts on a node; `attempt` is the one that assumed it, 0 for other stages."""

    pod: Pod
    uid: str
    node_name: str
    stage: PodStage
    attempt: int


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A decoded node on its way to an index."""

    index: int
    name: str
    node: Node


class ObjectKey(NamedTuple):
    """What names an object of a watched kind."""

    group: str
    version: str
    resource: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Document:
    """An object of a watched kind; without `source`, its removal."""

    key: ObjectKey
    source: bytes | None


_STAGES: Mapping[int, PodStage] = {stage.value: stage for stage in PodStage}
"""To look one up here costs a tenth of the enumeration's own call."""
Known: TypeAlias = Callable[[str], Pod | None]
"""The view on a pod by its UID, where one was made already."""
Step: TypeAlias = NodeRow | PlacedPod | Document | pb.NodeRemove | pb.PodRemove


class Listener(Protocol):
    """Who keeps columns of its own; Plugin is one."""

    def state_reset(self, *, epoch_changed: bool) -> None:
        """Forget all nodes, pods and watched objects."""

    def state_settled(self) -> None:
        """Hear that a full transfer is complete."""

    def node_upserted(self, index: int, node: Node) -> None:
        """Take over a node."""

    def node_removed(self, index: int, last: int) -> None:
        """Drop a node; the last one moves into its place."""

    def pod_upserted(self, placed: PlacedPod) -> None:
        """Take over a pod."""

    def pod_removed(self, placed: PlacedPod) -> None:
        """Drop a pod."""

    def object_upserted(self, key: ObjectKey, source: bytes) -> None:
        """Take over a watched object."""

    def object_removed(self, key: ObjectKey) -> None:
        """Drop a watched object."""


@dataclass
class Mirror:
    """Nodes by dense index, pods by UID, other objects by key."""

    listener: Listener
    known: Known = lambda _: None
    epoch: str = ""
    generation: int = 0
    last_epoch: str = ""
    """The epoch last held, which a mirror that lost its way remembers."""
    layout_since: int = 0
    """The first generation from which on every node has kept its index."""
    nodes: list[Node] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    pods: dict[str, PlacedPod] = field(default_factory=dict)
    on_node: dict[str, dict[str, PlacedPod]] = field(default_factory=dict)
    objects: dict[ObjectKey, bytes] = field(default_factory=dict)

    def replace(self, epoch: str, commit: pb.Commit, steps: Iterable[Step]) -> None:
        """Hold what a full transfer brought, and nothing else.

        Raises: SyncError: it doesn't fit together; nothing is held.
        """
        changed, self.last_epoch = epoch != self.last_epoch, epoch
        self._clear()
        self.listener.state_reset(epoch_changed=changed)
        self._apply(steps, commit.node_count)
        self.epoch, self.generation, self.layout_since = epoch, commit.generation, commit.generation
        self.listener.state_settled()

    def follow(self, delta: pb.Delta) -> bool:
        """Take one step; False if it is behind what is held.

        Raises: SyncError: a step is missing before it (what is held stays), or it doesn't fit.
        """
        if delta.generation <= self.generation:
            return False
        if delta.base_generation != self.generation:
            text = f"delta {delta.base_generation} to {delta.generation}, but {self.generation} is held"
            raise SyncError(pb.NACK_REASON_GAP, text)
        if self._apply(decode(delta.changes, self.known), delta.node_count):
            self.layout_since = delta.generation
        self.generation = delta.generation
        return True

    def drop(self) -> None:
        """Hold nothing, until the next full transfer."""
        self._clear()
        self.epoch, self.generation, self.layout_since = "", 0, 0

    def think_away(self, uid: str) -> PlacedPod | None:
        """Show a pod as gone, for the time of an overlay; return it, None if it is not there."""
        placed = self.pods.get(uid)
        self._take_pod(uid)
        return placed

    def think_there(self, placed: PlacedPod) -> None:
        """Show a pod as there, for the time of an overlay, or put one back."""
        self._put_pod(placed)

    def _clear(self) -> None:
        self.generation = 0
        for table in (self.nodes, self.index, self.pods, self.on_node, self.objects):
            table.clear()

    def _apply(self, steps: Iterable[Step], node_count: int) -> bool:
        """Apply and check; True if nodes came, went or moved."""
        before = len(self.nodes)
        moved = False
        try:
            for step in steps:
                moved |= self._one(step)
            if len(self.nodes) != node_count:
                raise _mismatch(f"{len(self.nodes)} nodes are held, the host has {node_count}")
        except SyncError:
            self.drop()
            raise
        return moved or before != len(self.nodes)

    def _one(self, step: Step) -> bool:
        match step:
            case NodeRow():
                self._put_node(step)
            case PlacedPod():
                self._put_pod(step)
            case Document():
                self._put_object(step)
            case pb.PodRemove():
                self._take_pod(step.uid)
            case pb.NodeRemove():
                self._take_node(step.index, step.name)
                return True
        return False

    def _put_node(self, row: NodeRow) -> None:
        if row.index == len(self.nodes) and row.name not in self.index:
            self.nodes.append(row.node)
            self.index[row.name] = row.index
        elif self.index.get(row.name) == row.index:
            self.nodes[row.index] = row.node
        else:
            raise _mismatch(f"node {row.name!r} can't be at index {row.index}")
        self.listener.node_upserted(row.index, row.node)

    def _take_node(self, index: int, name: str) -> None:
        if self.index.get(name) != index:
            raise _mismatch(f"node {name!r} is not at index {index}")
        last = len(self.nodes) - 1
        moving = self.nodes.pop()
        del self.index[name]
        if index != last:
            self.nodes[index] = moving
            self.index[moving.name] = index
        self.listener.node_removed(index, last)

    def _put_pod(self, placed: PlacedPod) -> None:
        before = self.pods.get(placed.uid)
        if before is not None and before.node_name != placed.node_name:
            self._take_pod(placed.uid)
        self.pods[placed.uid] = placed
        self.on_node.setdefault(placed.node_name, {})[placed.uid] = placed
        self.listener.pod_upserted(placed)

    def _take_pod(self, uid: str) -> None:
        placed = self.pods.pop(uid, None)
        if placed is None:
            return
        there = self.on_node[placed.node_name]
        del there[uid]
        if not there:
            del self.on_node[placed.node_name]
        self.listener.pod_removed(placed)

    def _put_object(self, document: Document) -> None:
        if document.source is not None:
            self.objects[document.key] = document.source
            self.listener.object_upserted(document.key, document.source)
        elif self.objects.pop(document.key, None) is not None:
            self.listener.object_removed(document.key)


def decode(changes: Iterable[pb.Change], known: Known) -> list[Step]:
    """Return the changes with their objects decoded.

    Raises: SyncError: one can't be.
    """
    steps = []
    for change in changes:
        kind = change.WhichOneof("change")
        if kind is None or kind not in _READERS:
            raise SyncError(pb.NACK_REASON_BAD_OBJECT, "a change of an unknown kind")
        try:
            steps.append(_READERS[kind](getattr(change, kind), known))
        except (msgspec.MsgspecError, ValueError) as error:
            raise SyncError(pb.NACK_REASON_BAD_OBJECT, f"{kind}: {error}") from error
    return steps


def placed_pod(upsert: pb.PodUpsert, known: Known, node_name: str | None = None) -> PlacedPod:
    """Return the pod as it counts on a node, another than its own if one is given.

    Raises: msgspec.MsgspecError, ValueError: its object or its stage makes no sense.
    """
    uid, stage = upsert.uid, _STAGES.get(upsert.stage) or PodStage(upsert.stage)
    pod = pod_view(upsert.object, known(uid))
    return PlacedPod(pod, uid, node_name or upsert.node_name, stage, upsert.attempt)


def pod_view(source: bytes, known: Pod | None) -> Pod:
    """Return the view on a pod's JSON; the known one where that is of the same bytes.

    Raises: msgspec.MsgspecError: it is no pod.
    """
    return known if known is not None and known.source == source else decode_pod(source)


def _key(key: pb.ObjectKey) -> ObjectKey:
    return ObjectKey(key.group, key.version, key.resource, key.namespace, key.name)


_READERS: Mapping[str, Callable[[Any, Known], Step]] = {
    "node_upsert": lambda node, _: NodeRow(node.index, node.name, decode_node(node.object)),
    "node_remove": lambda node, _: node,
    "pod_upsert": placed_pod,
    "pod_remove": lambda pod, _: pod,
    "object_upsert": lambda upsert, _: Document(_key(upsert.key), upsert.object),
    "object_remove": lambda removed, _: Document(_key(removed.key), None),
}


def _mismatch(text: str) -> SyncError:
    return SyncError(pb.NACK_REASON_MISMATCH, text)
