"""What the cluster looks like now: node and pod events, plus the pods this scheduler has assumed.

    unknown --assume--> assumed --add (binding observed)--> added --update--> added
    unknown --add--> added (bound by another scheduler)
    assumed --forget--> unknown
    assumed, added --remove--> unknown

An assumed pod stays assumed until its binding is observed, it is forgotten or removed: it never expires.
One task owns the cache, so it needs no lock.

Source: pkg/scheduler/backend/cache/cache.go (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable

from berth.cache.errors import CacheCorruptedError, PodStateError
from berth.cache.trials import SnapshotTrials
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps, at_once
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.node_tree import NodeTree
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.snapshot.snapshot_step import SnapshotStep

log = logging.getLogger(__name__)


class Cache:
    """Nodes by name, pods by UID.

    `pod_groups` says which pods each group has; None unless GenericWorkload is enabled.
    """

    def __init__(
        self, pod_groups: PodGroupStates | None = None, *, resizes_count_by_pod: bool = False
    ) -> None:
        self.pod_groups = pod_groups
        self._by_pod = resizes_count_by_pod
        self._nodes: dict[str, NodeInfo] = {}
        self._tree = NodeTree()
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        self._changed: dict[str, NodeInfo] = {}
        self._removed: dict[str, None] = {}
        self._pod_steps: list[tuple[int, PodInfo]] = []
        self._trials = SnapshotTrials()
        self.version = 0
        """How many updates brought the snapshot something; trials count for none."""
        self.followers: list[Callable[[SnapshotStep], None]] = []
        """Each is called with every update of the snapshot, once it is done."""

    def node_count(self) -> int:
        """How many nodes are known, ghosts included."""
        return len(self._nodes)

    def pod_count(self) -> int:
        """How many pods are on nodes, assumed ones included."""
        return len(self._pods)

    def assumed_count(self) -> int:
        """How many pods are assumed."""
        return len(self._assumed)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod was placed by this scheduler and its binding not yet observed."""
        return uid in self._assumed

    def get_pod(self, uid: str) -> Pod | None:
        """The pod as the cache knows it, with its node; None where it is unknown."""
        info = self._pods.get(uid)
        return info.pod if info else None

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod on some node by its name. Cost: O(pods); for people who ask, not for cycles."""
        pods = (info.pod for info in self._pods.values())
        return next((p for p in pods if p.name == name and p.namespace == namespace), None)

    def node_info(self, name: str) -> NodeInfo | None:
        """What is known of a node."""
        return self._nodes.get(name)

    def node_infos(self) -> list[NodeInfo]:
        """All that is known of nodes, ghosts included. Cost: O(nodes); for people who ask, not for cycles."""
        return list(self._nodes.values())

    def assume_pod(self, pod: Pod) -> None:
        """Count a pod on the node it is about to be bound to.

        Raises: PodStateError where the pod is already here, or has no UID.
        """
        _check_key(pod)
        if pod.uid in self._pods:
            raise PodStateError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        self._place(PodInfo(pod))
        self._assumed.add(pod.uid)
        if self.pod_groups is not None:
            self.pod_groups.assume(pod)

    def forget_pod(self, pod: Pod) -> None:
        """Take an assumed pod back; an unknown one is no matter.

        Raises: PodStateError where the pod was observed as bound, or sits on another node.
        """
        info = self._pods.get(pod.uid)
        if info is None:
            return
        if info.pod.node_name != pod.node_name:
            raise PodStateError(
                f"pod {pod.uid}({pod.key}) was assumed on {pod.node_name} "
                f"but assigned to {info.pod.node_name}"
            )
        if pod.uid not in self._assumed:
            raise PodStateError(f"pod {pod.uid}({pod.key}) wasn't assumed so cannot be forgotten")
        self._take_out(info)
        if self.pod_groups is not None:
            self.pod_groups.forget(pod)

    def add_pod(self, pod: Pod) -> None:
        """Take over a pod that was observed on a node; for an assumed one this confirms the binding.

        Raises: PodStateError where it was observed before, or has no UID.
        """
        _check_key(pod)
        known = self._pods.get(pod.uid)
        if known is not None:
            if pod.uid not in self._assumed:
                raise PodStateError(f"pod {pod.uid}({pod.key}) was already in added state")
            self._replace(known, pod)
        else:
            self._place(PodInfo(pod, by_pod=self._by_pod))
        if self.pod_groups is not None:
            self.pod_groups.add(pod)

    def update_pod(self, old: Pod, new: Pod) -> None:
        """Take over a new version of a pod on a node.

        Raises: PodStateError where it is not in the added state; CacheCorruptedError where it changed nodes.
        """
        known = self._pods.get(old.uid)
        if known is None:
            raise PodStateError(
                f"pod {old.uid}({old.key}) is not added to scheduler cache, so cannot be updated"
            )
        if old.uid in self._assumed:
            raise PodStateError(f"assumed pod {old.uid}({old.key}) should not be updated")
        if known.pod.node_name != new.node_name:
            raise CacheCorruptedError(
                f"pod {new.uid}({new.key}) was on {known.pod.node_name}, its update names {new.node_name}"
            )
        self._replace(known, new)
        if self.pod_groups is not None:
            self.pod_groups.delete(old)
            self.pod_groups.add(new)

    def remove_pod(self, pod: Pod) -> None:
        """Take a deleted pod out, assumed or not.

        Raises: PodStateError where it is unknown; CacheCorruptedError where it is on another node.
        """
        known = self._pods.get(pod.uid)
        if known is None:
            raise PodStateError(
                f"pod {pod.uid}({pod.key}) is not found in scheduler cache, so cannot be removed from it"
            )
        if pod.node_name and known.pod.node_name != pod.node_name:
            raise CacheCorruptedError(
                f"pod {pod.uid}({pod.key}) was on {known.pod.node_name}, its removal names {pod.node_name}"
            )
        self._take_out(known)
        if self.pod_groups is not None:
            self.pod_groups.delete(known.pod)

    def add_node(self, node: Node) -> None:
        """Take over a node, new or seen before; a ghost keeps its pods and becomes real."""
        info = self._nodes.get(node.name) or NodeInfo(node.name)
        info.set_node(node)
        self._nodes[node.name] = info
        self._tree.put(node)
        self._touch(info)

    def update_node(self, old: Node, new: Node) -> None:
        """Take over a new version of a node."""
        del old
        self.add_node(new)

    def remove_node(self, node: Node) -> None:
        """Take a node out; it stays as a ghost while pods are on it.

        Raises: KeyError where it is unknown.
        """
        info = self._nodes.get(node.name)
        if info is None or info.ghost:
            raise KeyError(f"node {node.name} is not found")
        info.set_node(None)
        self._tree.remove(node.name)
        self._changed.pop(node.name, None)
        self._removed[node.name] = None
        self._drop_empty_ghost(info)

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Take over into the snapshot what changed since it was last updated.

        The first update is a step in any case: from it, followers of an empty cluster learn that it is empty.
        One snapshot follows one cache. Cost: O(nodes changed).
        """
        if self._trials:
            log.error("pods of an unfinished pod-group cycle dropped count=%s", len(self._trials))
            self.undo_trials(snapshot)
        if snapshot.generation and not (self._removed or self._changed or self._pod_steps):
            return
        dropped = tuple(name for name in self._removed if name in snapshot.row_of)
        nodes = tuple(info.node for info in self._changed.values() if info.node_changed and info.node)
        for name in dropped:
            snapshot.drop(name)
        snapshot.take(self._changed.values())
        snapshot.tree = self._tree
        snapshot.generation += 1
        self.version += 1
        self._removed.clear()
        self._changed.clear()
        self._tell(SnapshotStep(snapshot.generation, dropped, nodes, tuple(self._pod_steps)))
        self._pod_steps.clear()

    def try_pod(self, snapshot: Snapshot, sign: int, pod: PodInfo) -> None:
        """Count a pod in (1) or out (-1) in the snapshot alone, for as long as a pod-group cycle tries that.

        Raises: KeyError where its node is not in the snapshot.
        """
        self._trials.begin(snapshot, sign, pod)
        self._tell_trial(snapshot, sign, pod)

    def undo_trials(self, snapshot: Snapshot, left: int = 0) -> None:
        """Take the latest trials back until that many are left."""
        while len(self._trials) > left:
            sign, pod = self._trials.undo(snapshot)
            self._tell_trial(snapshot, -sign, pod)

    @property
    def trials(self) -> int:
        """How many pods are counted in or out of the snapshot alone."""
        return len(self._trials)

    def _tell_trial(self, snapshot: Snapshot, sign: int, pod: PodInfo) -> None:
        snapshot.generation += 1
        self._tell(SnapshotStep(snapshot.generation, (), (), ((sign, pod),)))

    def _tell(self, step: SnapshotStep) -> None:
        for follower in self.followers:
            follower(step)

    def fresh_snapshot(self, *, without: str = "") -> Snapshot:
        """A snapshot built from nothing, leaving the one that follows this cache alone.

        The pod of the UID `without` is left out.
        """
        return at_once(self.fresh_snapshot_in_steps(without=without))

    def fresh_snapshot_in_steps(self, *, without: str = "") -> Steps[Snapshot]:
        """The same in steps between which the cache may change: it is the snapshot of the first of them."""
        snapshot = Snapshot()
        known = [(info.name, info.node, list(info.pods.values())) for info in self._nodes.values()]
        for name, node, pods in known:
            if node is not None:
                twin = NodeInfo(name)
                twin.set_node(node)
                for pod in pods:
                    if pod.uid != without:
                        twin.add_pod(pod)
                snapshot.take([twin])
                yield
        return snapshot

    def _place(self, info: PodInfo) -> None:
        name = info.pod.node_name
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = NodeInfo(name)
        node.add_pod(info)
        self._pods[info.uid] = info
        self._note(1, info)
        self._touch(node)

    def _replace(self, known: PodInfo, pod: Pod) -> None:
        """Take over another version of a pod; it is observed now, whatever it was."""
        newer = PodInfo(pod, by_pod=self._by_pod)
        same_place = pod.node_name == known.pod.node_name and pod.uid == known.uid
        if not (same_place and newer.counts_like(known)):
            self._take_out(known)
            self._place(newer)
            return
        self._assumed.discard(known.uid)
        for pods in (self._nodes[pod.node_name].pods, self._pods):
            # A dictionary keeps the key that it has: the old version's UID would stay with it.
            del pods[known.uid]
            pods[newer.uid] = newer
        self._note(-1, known)
        self._note(1, newer)
        self._touch(self._nodes[pod.node_name])

    def _take_out(self, info: PodInfo) -> None:
        node = self._nodes[info.pod.node_name]
        node.remove_pod(info.uid)
        del self._pods[info.uid]
        self._assumed.discard(info.uid)
        self._note(-1, info)
        self._touch(node)
        self._drop_empty_ghost(node)

    def _note(self, sign: int, info: PodInfo) -> None:
        if self.followers:
            self._pod_steps.append((sign, info))

    def _touch(self, info: NodeInfo) -> None:
        if not info.ghost:
            self._changed[info.name] = info

    def _drop_empty_ghost(self, info: NodeInfo) -> None:
        if info.ghost and not info.pods:
            del self._nodes[info.name]


def _check_key(pod: Pod) -> None:
    if not pod.uid:
        raise PodStateError("cannot get cache key for pod with empty UID")
