"""The cluster state for one sidecar: a delta for each step that concerns it, and a full transfer on demand.

A feed follows the snapshot row by row, so that a node's index in a call is its row. It keeps the last deltas,
so that a plugin that reconnects resumes, and a call can carry deltas that the stream has not delivered yet.

Source: proto/berth/plugin/v1/state.proto; docs/protocol.md "State".
"""

import logging
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import NamedTuple, Protocol

import msgspec

from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.nominations import NOTHING, NominationChanges, Nominations
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.cluster_state.watched_objects import WatchedObjects
from berth.out_of_tree.limits import ENVELOPE_BYTES, MESSAGE_BYTES
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.snapshot.snapshot_step import SnapshotStep
from berth_plugin_proto import identity_pb2, state_pb2

log = logging.getLogger(__name__)

KEPT_DELTAS = 512
MAX_KEPT_BYTES = 16 << 20
CHUNK_BYTES = 1 << 20
MAX_CARRIED_BYTES = 1 << 16
MAX_DELTA_BYTES = 3 << 20
"""A step that is larger goes out as a full transfer, whose chunks stay below gRPC's 4 MiB."""


class Reserved(NamedTuple):
    """The attempt that assumes a pod, and the pod's JSON as it was then."""

    attempt: int
    data: bytes


class FeedFollower(Protocol):
    """Receives notifications of a feed."""

    def notify(self) -> None:
        """A new step is to be sent."""

    def kinds_listed(self) -> None:
        """A watched kind was listed, or can't be listed."""


class StateFeed:
    """Deltas and full transfers for one plugin, restricted to its declared interest."""

    def __init__(
        self,
        snapshot: Snapshot,
        nodes: RawObjects[Node],
        pods: RawObjects[Pod],
        is_assumed: Callable[[str], bool],
        *,
        objects: WatchedObjects,
        nominations: Nominations,
    ) -> None:
        self.wanted = identity_pb2.StateInterest(nodes=True, pods=True)
        self._reserved: dict[str, Reserved] = {}
        """Pods that are assumed or about to be, by UID."""
        self.touched = RowJournal()
        """The snapshot's rows of nodes about which the plugin was sent anything but the nodes themselves."""
        self.unanswered = 0
        """How many calls that may change what the plugin says of nodes have no answer yet."""
        self.carried_to = 0
        """The newest generation that a call has brought: the plugin may hold it before the stream does."""
        self.external_changes = 0
        """Changes outside the snapshot so far: of objects that it watches, and requeues that it asked for."""
        self._snapshot = snapshot
        self._nodes = nodes
        self._pods = pods
        self._is_assumed = is_assumed
        self._objects = objects
        self._nominations = nominations
        self._generation = 0
        self._transferred = False
        """Whether the plugin may hold a generation, of its present wishes: else no delta has a beginning."""
        self.followers: list[FeedFollower] = []
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._deltas: BoundedCache[int, state_pb2.Delta] = BoundedCache(MAX_KEPT_BYTES, KEPT_DELTAS)
        """By generation, the newest used last."""
        self._patched: dict[str, Pod] = {}
        self._sent_as_assumed: set[str] = set()
        """Pods that the plugin knows as assumed, by UID."""

    def begin(self) -> None:
        """Follow the snapshot from its current generation: it may be older than this feed."""
        self._names = list(self._snapshot.names)
        self._rows = dict(self._snapshot.row_of)
        self._generation = 1 if self._snapshot.generation else 0

    @property
    def generation(self) -> int:
        """The newest generation: starts at 1 and grows with each step that concerns the plugin."""
        return self._generation

    def narrow(self, wanted: identity_pb2.StateInterest) -> None:
        """Set the plugin's interest; deltas that were made for another interest are dropped."""
        if wanted != self.wanted:
            self._deltas.clear()
            self._transferred = False
            if not wanted.pods:
                self._reserved.clear()
            self._nominations.begin(wanted.pod_resources)
        self.wanted = wanted
        self._objects.follow(self, wanted.resources)

    def overdue(self) -> list[str]:
        """The watched kinds that can't be listed, and why."""
        return self._objects.overdue(self.wanted.resources)

    def end(self) -> None:
        """Stop following watched objects."""
        self._objects.forget(self)

    def take(self, change: state_pb2.Change) -> None:
        """Make a step of a watched object's change; before the first snapshot, the transfer contains it."""
        # Any answer may depend on the object, and a pod may be tried before the plugin asks for a requeue.
        self.external_changes += 1
        if not self._snapshot.generation:
            return
        self._keep([change])

    def nominated(self, node_name: str) -> None:
        """The node's nominated pods changed: `catch_up` or the next step sends them."""
        if self.wanted.nominations:
            self.touch(node_name)

    def touch(self, node_name: str) -> None:
        """Record that the plugin was sent something about that node."""
        row = self._snapshot.row_of.get(node_name)
        if row is not None:
            self.touched.note(row)

    def catch_up(self) -> None:
        """Make a step of the nominations that changed, if any."""
        if not self.wanted.nominations or not self._snapshot.generation or not self._nominations.stale():
            return
        removals, upserts = self._nominations.news()
        if removals or upserts:
            self._keep(removals + upserts)

    def on_listing(self) -> None:
        """Forward that a kind was listed, or can't be."""
        for follower in self.followers:
            follower.kinds_listed()

    def reserving(self, uid: str, attempt: int) -> None:
        """Record that the plugin may hold resources for the pod from now on, on behalf of that attempt."""
        if self.wanted.pods:
            self._reserved[uid] = Reserved(attempt, self._pods.get(uid))

    def patched(self, pod: Pod) -> None:
        """An assumed pod's metadata was changed: the next step sends the pod again."""
        self._patched[pod.uid] = pod

    def follow(self, step: SnapshotStep) -> None:
        """Make a step of the snapshot's changes."""
        wanted = self.wanted
        of_nodes = bool(step.dropped or step.nodes)
        changes = self._node_changes(step) if of_nodes else []
        gone, promised = self._nominations_beside(step) if wanted.nominations else NOTHING
        changes += gone
        if wanted.pods:
            changes += self._pod_changes(step)
        if self._patched:
            changes += self._patched_changes(step)
        changes += promised
        if changes or (of_nodes and wanted.nodes) or not self._generation:
            self._keep(changes)

    def _keep(self, changes: list[state_pb2.Change]) -> None:
        """Make a generation of the changes, and notify the stream."""
        before, self._generation = self._generation, self._generation + 1
        if self._transferred:
            delta = state_pb2.Delta(
                base_generation=before,
                generation=self._generation,
                changes=changes,
                node_count=self._node_count,
            )
            size = delta.ByteSize()
            if size > MAX_DELTA_BYTES:
                self._deltas.clear()
            else:
                self._deltas.put(self._generation, delta, size)
        for follower in self.followers:
            follower.notify()

    def since(self, generation: int) -> list[state_pb2.Delta] | None:
        """The deltas after that generation, oldest first; None where one of them is not kept."""
        if not self._transferred:
            return None
        oldest = self._deltas.oldest()
        if oldest is None:
            return [] if generation == self.generation else None
        if oldest[0].base_generation > generation:
            return None
        newer = takewhile(lambda delta: delta.generation > generation, self._deltas.newest())
        return list(newer)[::-1]

    def carried(self, generation: int) -> list[state_pb2.Delta]:
        """The deltas after that generation, for a call to carry; none where they are too large for that."""
        deltas = self.since(generation)
        if not deltas or sum([delta.ByteSize() for delta in deltas]) > MAX_CARRIED_BYTES:
            return []
        self.carried_to = deltas[-1].generation
        return deltas

    def transfer(self) -> Iterator[state_pb2.SyncRequest]:
        """The whole current state, as chunks and a commit; all of it counts as sent."""
        self._transferred = True
        self._sent_as_assumed = {info.uid for info in self._pods_of_interest() if self._is_assumed(info.uid)}
        return self.picture()

    def picture(self) -> Iterator[state_pb2.SyncRequest]:
        """The whole current state for another reader; none of it counts as sent."""
        commit = state_pb2.Commit(generation=self.generation, node_count=self._node_count)
        return _in_chunks(self._everything(), commit)

    @property
    def _node_count(self) -> int:
        """How many nodes the plugin is sent."""
        return len(self._names) if self.wanted.nodes else 0

    def _everything(self) -> list[state_pb2.Change]:
        snapshot = self._snapshot
        changes = []
        if self.wanted.nodes:
            changes += [
                state_pb2.Change(node_upsert=self._node(row, node)) for row, node in enumerate(snapshot.nodes)
            ]
        if self.wanted.pods:
            # A pod without JSON was deleted since the last step: the next one removes it.
            there = (info for info in self._pods_of_interest() if self._pods.get(info.uid))
            changes += [
                state_pb2.Change(pod_upsert=self._pod(info, assumed=self._is_assumed(info.uid)))
                for info in there
            ]
        if self.wanted.nominations:
            changes += self._nominations.everything()
        return [*changes, *self._objects.upserts(self.wanted.resources)]

    def _pods_of_interest(self) -> Iterator[PodInfo]:
        on_nodes = (info for on_node in self._snapshot.pods for info in on_node.values())
        return filter(self._concerns, on_nodes)

    def _node_changes(self, step: SnapshotStep) -> list[state_pb2.Change]:
        """The node changes of the step, in the order of the snapshot's row changes."""
        told = self.wanted.nodes and self._transferred
        changes = []
        for name in step.dropped:
            index = self._drop_row(name)
            if told:
                removed = state_pb2.NodeRemove(index=index, name=name)
                changes.append(state_pb2.Change(node_remove=removed))
        for node in step.nodes:
            row = self._rows.setdefault(node.name, len(self._names))
            if row == len(self._names):
                self._names.append(node.name)
            if told:
                changes.append(state_pb2.Change(node_upsert=self._node(row, node)))
        return changes

    def _drop_row(self, name: str) -> int:
        """The row that the node had, which the last node takes over."""
        index = self._rows.pop(name)
        last = self._names.pop()
        if last != name:
            self._names[index] = last
            self._rows[last] = index
        return index

    def _pod_changes(self, step: SnapshotStep) -> Iterator[state_pb2.Change]:
        """The change of each pod of the step, one for each pod."""
        pods = step.pods
        named = [(info.pod.metadata.uid, sign, info) for sign, info in pods]
        before = {uid: info for uid, sign, info in reversed(named) if sign < 0}
        last = {uid: (sign, info) for uid, sign, info in named}
        for uid, (sign, info) in last.items():
            assumed = self._is_assumed(uid)
            reserved = self._reserved.get(uid) if assumed else self._reserved.pop(uid, None)
            if not self._concerns(info):
                continue
            if sign > 0 and self._is_old_news(info, before.get(uid)):
                continue
            self.touch(info.pod.node_name)
            if sign < 0:
                if reserved is not None and reserved.data and uid not in self._sent_as_assumed:
                    # No step contained it: a plugin that reserved something for it has to see the removal.
                    yield state_pb2.Change(pod_upsert=_upsert(info, reserved.data, reserved.attempt))
                self._sent_as_assumed.discard(uid)
                yield state_pb2.Change(pod_remove=state_pb2.PodRemove(uid=uid))
            else:
                yield self._as_sent(info, assumed=assumed)

    def _is_old_news(self, info: PodInfo, before: PodInfo | None) -> bool:
        """Whether the plugin already has this version, as far as it can tell the difference."""
        if before is None or not info.counts_like(before):
            return False
        same_stage = self._is_assumed(info.uid) == (info.uid in self._sent_as_assumed)
        old, new = before.pod.metadata, info.pod.metadata
        return self.wanted.pods_without_status and same_stage and old.annotations == new.annotations

    def _nominations_beside(self, step: SnapshotStep) -> NominationChanges:
        last = {info.uid: sign for sign, info in step.pods}
        return self._nominations.news([uid for uid, sign in last.items() if sign < 0])

    def _patched_changes(self, step: SnapshotStep) -> Iterator[state_pb2.Change]:
        """Pods with patched metadata that the step does not contain already."""
        brought = {info.uid for _, info in step.pods}
        patched, self._patched = self._patched, {}
        for uid, pod in patched.items():
            if uid not in brought and self._is_assumed(uid):
                info = PodInfo(pod)
                if self.wanted.pods and self._concerns(info):
                    self.touch(pod.node_name)
                    yield self._as_sent(info, assumed=True)

    def _concerns(self, info: PodInfo) -> bool:
        resources = self.wanted.pod_resources
        return not resources or any(info.requests.get(name) for name in resources)

    def _node(self, row: int, node: Node) -> state_pb2.NodeUpsert:
        return state_pb2.NodeUpsert(index=row, name=node.name, object=self._nodes.get(node.uid))

    def _as_sent(self, info: PodInfo, *, assumed: bool) -> state_pb2.Change:
        """The pod's change for the next step; records the stage that the plugin then has it in."""
        if assumed:
            self._sent_as_assumed.add(info.uid)
        else:
            self._sent_as_assumed.discard(info.uid)
        return state_pb2.Change(pod_upsert=self._pod(info, assumed=assumed))

    def _pod(self, info: PodInfo, *, assumed: bool) -> state_pb2.PodUpsert:
        # Planners try hypothetical pods.
        data = self._pods.get(info.uid) or msgspec.json.encode(info.pod.written())
        if not assumed:
            return _upsert(info, data)
        known = self._reserved.get(info.uid)
        return _upsert(info, data, known.attempt if known else 0)


def _upsert(info: PodInfo, data: bytes, attempt: int | None = None) -> state_pb2.PodUpsert:
    """The upsert of a pod on its node; with the attempt that assumed it, where it is not bound yet."""
    pod = info.pod
    stage = state_pb2.POD_STAGE_PLACED if attempt is None else state_pb2.POD_STAGE_ASSUMED
    return state_pb2.PodUpsert(
        uid=pod.metadata.uid, node_name=pod.node_name, stage=stage, object=data, attempt=attempt or 0
    )


def _in_chunks(changes: list[state_pb2.Change], commit: state_pb2.Commit) -> Iterator[state_pb2.SyncRequest]:
    chunk, size = state_pb2.Chunk(), 0
    for change in changes:
        more = change.ByteSize()
        if more > MESSAGE_BYTES - ENVELOPE_BYTES:
            # Sent, it would end the stream of every plugin that wants pods, again after each reconnection.
            log.warning(
                "object left out of plugins' state change=%s bytes=%s", change.WhichOneof("change"), more
            )
            continue
        size += more
        if size > CHUNK_BYTES and chunk.changes:
            yield state_pb2.SyncRequest(chunk=chunk)
            chunk, size = state_pb2.Chunk(), more
        chunk.changes.append(change)
    if chunk.changes:
        yield state_pb2.SyncRequest(chunk=chunk)
    yield state_pb2.SyncRequest(commit=commit)
