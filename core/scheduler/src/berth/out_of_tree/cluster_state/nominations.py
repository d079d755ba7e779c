"""Nominated pods, as they are sent to one sidecar.

    queue's nominator --changes--> Nominations --PodRemove, PodUpsert NOMINATED--> StateFeed

A pod that is assumed or bound is no longer nominated: its removal precedes the snapshot's own changes.

Source: proto/berth/plugin/v1/state.proto PodStage.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.queue.pools.nominator import Nominator
from berth.snapshot.pod_info import PodInfo
from berth_plugin_proto import state_pb2


class NominationChanges(NamedTuple):
    """Changed nominations: in a step, removals precede the snapshot's own changes and upserts follow them."""

    removals: list[state_pb2.Change]
    upserts: list[state_pb2.Change]


NOTHING = NominationChanges([], [])


class Nominations:
    """The nominations that a plugin was sent, by node, and the nodes whose nominations changed since."""

    def __init__(self, nominator: Nominator, pods: RawObjects[Pod]) -> None:
        self._nominator = nominator
        self._pods = pods
        self._position = -1
        self._resources: Collection[str] = ()
        self._sent: dict[str, dict[str, bytes]] = {}

    def begin(self, resources: Collection[str]) -> None:
        """Send the pods that request one of these resources, or all where none is named."""
        self._resources, self._position, self._sent = resources, -1, {}

    def stale(self) -> bool:
        """Whether a nomination may have changed."""
        return self._nominator.changes.end != self._position

    def news(self, dropped: Collection[str] = ()) -> NominationChanges:
        """The changes since the last call. The step removes the pods in `dropped` already."""
        nominator = self._nominator
        for uid in dropped:
            self._sent.get(nominator.node_of(uid), {}).pop(uid, None)
        names = self._changed(nominator, dropped)
        before = {(uid, name): data for name in names for uid, data in self._sent.pop(name, {}).items()}
        upserts = []
        for name in names:
            now = dict(self._promised(nominator, name))
            if now:
                self._sent[name] = now
            upserts += [_upsert(uid, name, now[uid]) for uid in now if before.get((uid, name)) != now[uid]]
        still = {uid for name in names for uid in self._sent.get(name, ())}
        gone = [uid for uid, _ in before if uid not in still]
        return NominationChanges([_removal(uid) for uid in gone], upserts)

    def everything(self) -> Iterator[state_pb2.Change]:
        """All nominations, for a full transfer."""
        for name, pods in self._sent.items():
            for uid, data in pods.items():
                yield _upsert(uid, name, data)

    def _changed(self, nominator: Nominator, dropped: Collection[str]) -> Collection[str]:
        """The nodes whose nominations may have changed."""
        names = nominator.changes.since(self._position) if self._position >= 0 else None
        self._position = nominator.changes.end
        if names is None:
            names = (*self._sent, *nominator.nodes_with_nominations())
        return dict.fromkeys((*names, *filter(None, map(nominator.node_of, dropped))))

    def _promised(self, nominator: Nominator, name: str) -> Iterator[tuple[str, bytes]]:
        for pod in nominator.nominated_pods_for_node(name):
            data = self._pods.get(pod.uid)
            if data and self._concerns(data):
                yield pod.uid, data

    def _concerns(self, data: bytes) -> bool:
        if not self._resources:
            return True
        requests = PodInfo(decode_pod(data)).requests
        return any(requests.get(name) for name in self._resources)


def _upsert(uid: str, node_name: str, data: bytes) -> state_pb2.Change:
    stage = state_pb2.POD_STAGE_NOMINATED
    return state_pb2.Change(
        pod_upsert=state_pb2.PodUpsert(uid=uid, node_name=node_name, stage=stage, object=data)
    )


def _removal(uid: str) -> state_pb2.Change:
    return state_pb2.Change(pod_remove=state_pb2.PodRemove(uid=uid))
