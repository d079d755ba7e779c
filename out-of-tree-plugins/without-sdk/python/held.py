"""The plugin's copy of the cluster: all nodes by index, up to one generation."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from berth.plugin.v1 import state_pb2 as pb


class RefusedError(Exception):
    """A message of the stream that cannot be applied."""

    def __init__(self, reason: int, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Node:
    """What the plugin reads of a node."""

    name: str
    labels: dict[str, str]


@dataclass
class Held:
    """One state of the cluster; generation 0 means that nothing is held."""

    epoch: str = ""
    generation: int = 0
    indices_since: int = 0
    """The first generation since which no node has changed its index."""
    nodes: list[Node] = field(default_factory=list)

    @classmethod
    def transferred(cls, epoch: str, commit: pb.Commit, changes: Iterable[pb.Change]) -> "Held":
        """Return what a full transfer brought.

        Raises: RefusedError: it does not fit together.
        """
        held = cls(epoch, commit.generation, commit.generation)
        held._apply(changes, commit.node_count)
        return held

    def follow(self, delta: pb.Delta) -> None:
        """Take one step. A step that is held already is skipped.

        Raises: RefusedError: a step is missing before it, or it does not fit.
        """
        if delta.generation <= self.generation:
            return
        if delta.base_generation != self.generation:
            raise RefusedError(pb.NACK_REASON_GAP, f"{self.generation} is held, not {delta.base_generation}")
        if self._apply(delta.changes, delta.node_count):
            self.indices_since = delta.generation
        self.generation = delta.generation

    def _apply(self, changes: Iterable[pb.Change], node_count: int) -> bool:
        """Apply the changes in order; True if indices are others than before."""
        before, removed = len(self.nodes), False
        for change in changes:
            match change.WhichOneof("change"):
                case "node_upsert":
                    self._put(change.node_upsert)
                case "node_remove":
                    self._remove(change.node_remove)
                    removed = True
                # Pods and objects of other kinds were not asked for.
        if len(self.nodes) != node_count:
            raise RefusedError(pb.NACK_REASON_MISMATCH, f"{len(self.nodes)} nodes are held, not {node_count}")
        return removed or before != len(self.nodes)

    def _put(self, upsert: pb.NodeUpsert) -> None:
        try:
            node = Node(upsert.name, labels_of(upsert.object))
        except ValueError as error:
            raise RefusedError(pb.NACK_REASON_BAD_OBJECT, f"{upsert.name}: {error}") from error
        if upsert.index != len(self.nodes):
            self._check_name(upsert.index, upsert.name)
        self.nodes[upsert.index : upsert.index + 1] = [node]

    def _remove(self, removal: pb.NodeRemove) -> None:
        self._check_name(removal.index, removal.name)
        last = self.nodes.pop()
        if removal.index < len(self.nodes):
            self.nodes[removal.index] = last

    def _check_name(self, index: int, name: str) -> None:
        if index >= len(self.nodes) or self.nodes[index].name != name:
            raise RefusedError(pb.NACK_REASON_MISMATCH, f"{name} is not at {index}")


def labels_of(document: bytes) -> dict[str, str]:
    """Return the labels of an API object's JSON, which is all that the plugin reads of nodes and pods.

    Raises: ValueError: it is no object.
    """
    try:
        labels: dict[str, str] = json.loads(document)["metadata"].get("labels") or {}
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError("an object lacks its metadata") from error
    return labels
