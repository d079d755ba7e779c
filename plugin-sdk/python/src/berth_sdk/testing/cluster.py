"""The host's side of the state: nodes by index, pods by UID, objects by key, and the last changes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from berth_plugin_proto import state_pb2 as pb
from berth_sdk.outcomes import PodStage
from berth_sdk.state import ObjectKey
from berth_sdk.testing.builders import Document

CHUNK = 256


@dataclass
class Cluster:
    """A small cluster that counts generations."""

    generation: int = 1
    names: list[str] = field(default_factory=list)
    nodes: dict[str, Document] = field(default_factory=dict)
    pods: dict[str, pb.PodUpsert] = field(default_factory=dict)
    objects: dict[ObjectKey, Document] = field(default_factory=dict)
    pending: list[pb.Change] = field(default_factory=list)

    def put_node(self, node: Document) -> None:
        """Add or change a node."""
        name = node["metadata"]["name"]
        if name not in self.nodes:
            self.names.append(name)
        self.nodes[name] = node
        self.pending.append(pb.Change(node_upsert=self._node(self.names.index(name))))

    def remove_node(self, name: str) -> None:
        """Take a node away; the last one moves to its index."""
        index = self.names.index(name)
        last = self.names.pop()
        if last != name:
            self.names[index] = last
        del self.nodes[name]
        self.pending.append(pb.Change(node_remove=pb.NodeRemove(index=index, name=name)))

    def put_pod(
        self, pod: Document, node_name: str, stage: PodStage = PodStage.PLACED, attempt: int = 0
    ) -> None:
        """Count a pod on a node."""
        upsert = pb.PodUpsert(
            uid=pod["metadata"]["uid"],
            node_name=node_name,
            stage=stage.value,
            object=msgspec.json.encode(pod),
            attempt=attempt,
        )
        self.pods[upsert.uid] = upsert
        self.pending.append(pb.Change(pod_upsert=upsert))

    def remove_pod(self, uid: str) -> None:
        """Count a pod no longer."""
        self.pods.pop(uid, None)
        self.pending.append(pb.Change(pod_remove=pb.PodRemove(uid=uid)))

    def put_object(self, key: ObjectKey, document: Document) -> None:
        """Add or change an object of a watched kind."""
        self.objects[key] = document
        self.pending.append(_object(key, document))

    def remove_object(self, key: ObjectKey) -> None:
        """Take an object away."""
        del self.objects[key]
        self.pending.append(pb.Change(object_remove=pb.ObjectRemove(key=_key(key))))

    def step(self) -> pb.Delta:
        """Return everything since the last step as a delta to a new generation."""
        delta = pb.Delta(
            base_generation=self.generation,
            generation=self.generation + 1,
            changes=self.pending,
            node_count=len(self.names),
        )
        self.generation += 1
        self.pending = []
        return delta

    def transfer(self, epoch: str) -> Iterator[pb.SyncRequest]:
        """Yield the full state."""
        self.pending = []
        yield pb.SyncRequest(begin=pb.Begin(epoch=epoch))
        changes = [pb.Change(node_upsert=self._node(index)) for index in range(len(self.names))]
        changes += [pb.Change(pod_upsert=upsert) for upsert in self.pods.values()]
        changes += [_object(key, document) for key, document in self.objects.items()]
        for start in range(0, len(changes), CHUNK):
            yield pb.SyncRequest(chunk=pb.Chunk(changes=changes[start : start + CHUNK]))
        yield pb.SyncRequest(commit=pb.Commit(generation=self.generation, node_count=len(self.names)))

    def _node(self, index: int) -> pb.NodeUpsert:
        name = self.names[index]
        return pb.NodeUpsert(index=index, name=name, object=msgspec.json.encode(self.nodes[name]))


def _object(key: ObjectKey, document: Document) -> pb.Change:
    return pb.Change(object_upsert=pb.ObjectUpsert(key=_key(key), object=msgspec.json.encode(document)))


def _key(key: ObjectKey) -> pb.ObjectKey:
    return pb.ObjectKey(**key._asdict())
