"""Pods that were promised a node and are not on it yet.

Only references are kept; the pod is looked up in the queue when it is asked for, so that a pod in flight is a
bare reference: priority 0, no requests.

Source: pkg/scheduler/backend/queue/nominator.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterator

from berth.framework.interface import KEEP_NOMINATION, NominatingInfo, NominatingMode
from berth.objects.api_object import ObjectMeta
from berth.objects.pods.pod import Pod
from berth.snapshot.journal import Journal

PodLister = Callable[[str, str], Pod | None]
"""(namespace, name) -> the pod as the watch last showed it, None where it is gone."""


class Nominator:
    """Nominations by node, each in order of nomination, and by pod UID."""

    __slots__ = ("_by_node", "_node_of", "_pod_lister", "_queued", "changes", "followers")

    def __init__(self, pod_lister: PodLister, queued: Callable[[str], Pod | None]) -> None:
        self._pod_lister = pod_lister
        self._queued = queued
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self.changes: Journal[str] = Journal()
        self.followers: list[Callable[[str], None]] = []
        """Each is called with the node of every change."""

    def nominated_pods_for_node(self, node_name: str) -> Iterator[Pod]:
        """The pods nominated to that node, in the order of nomination."""
        references = list(self._by_node.get(node_name, {}).values())
        return (self._queued(reference.key) or reference for reference in references)

    def nodes_with_nominations(self) -> Iterator[str]:
        """The nodes that some pod is nominated to."""
        return iter(list(self._by_node))

    def node_of(self, uid: str) -> str:
        """The node that the pod of that UID is nominated to, empty if to none."""
        return self._node_of.get(uid, "")

    def touch(self, pod: Pod) -> None:
        """Note that the pod began or ceased to wait in the queue, where its nomination is looked up."""
        node_name = self._node_of.get(pod.uid)
        if node_name is not None:
            self._note(node_name)

    def add(self, pod: Pod, info: NominatingInfo | None = None) -> None:
        """Nominate the pod as `info` says, or as its status does; without a node this takes it back."""
        self.delete(pod)
        override = info is not None and info.mode is NominatingMode.OVERRIDE
        node_name = info.node_name if info is not None and override else pod.nominated_node_name
        if not node_name:
            return
        known = self._pod_lister(pod.namespace, pod.name)
        if known is None or known.node_name:
            return
        self._node_of[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = bare_reference(pod)
        self._note(node_name)

    def update(self, old: Pod, new: Pod) -> None:
        """Follow an update of the pod; one that knows of no nomination yet leaves it standing."""
        held = self._node_of.get(old.uid)
        info = KEEP_NOMINATION
        if held is not None and not old.nominated_node_name and not new.nominated_node_name:
            info = NominatingInfo(NominatingMode.OVERRIDE, held)
        self.delete(old)
        self.add(new, info)

    def delete(self, pod: Pod) -> None:
        """Take the pod's nomination back."""
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is None:
            return
        on_node = self._by_node[node_name]
        del on_node[pod.uid]
        if not on_node:
            del self._by_node[node_name]
        self._note(node_name)

    def _note(self, node_name: str) -> None:
        self.changes.note(node_name)
        for follower in self.followers:
            follower(node_name)


def bare_reference(pod: Pod) -> Pod:
    """A pod of which only namespace, name and UID are known."""
    return Pod.of(ObjectMeta(namespace=pod.namespace, name=pod.name, uid=pod.uid))
