"""The owners of pods: a trace's Deployments and DaemonSets create and remove pods as time passes.

    revision, when it is due --> Replicated or DaemonSet --> pods are put and removed
    nodes come, change, go; pods get a node, are gone --------^

Called by: engine.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from berth.event_handlers.handler import ResourceHandler
from berth.objects.api_object import TypedObject
from berth.objects.node import Node
from berth.objects.pods.pod import NO_STATUS, Pod
from berth.simulation.cluster.daemon_sets import DaemonSet
from berth.simulation.cluster.replicated import Replicated
from berth.simulation.cluster.state import ClusterState
from berth.simulation.reading.revisions import DAEMON_SET, Revision
from berth.simulation.reading.timeline import DURATION


class Workloads:
    """All owners of one simulation.

    `put` creates a pod and `remove` takes one away; `taken` are the keys of pods that others make.
    """

    def __init__(
        self,
        state: ClusterState,
        put: Callable[[Pod], None],
        remove: Callable[[Pod], None],
        taken: Iterable[str],
    ) -> None:
        self._state, self._put, self.remove = state, put, remove
        self._taken = set(taken)
        self._owners: dict[str, Replicated | DaemonSet] = {}
        self._daemon_sets: list[DaemonSet] = []
        self._owner_of: dict[str, Replicated | DaemonSet] = {}
        """By the key of each pod that was made."""

    def apply(self, revision: Revision) -> None:
        """Apply a revision to its owner, which is created with its first revision."""
        owner = self._owners.get(revision.owner)
        if owner is None:
            owner = self._owners[revision.owner] = self._new(revision)
        owner.apply(revision)

    def _new(self, revision: Revision) -> Replicated | DaemonSet:
        pods = _Pods(self, revision.owner)
        if revision.kind != DAEMON_SET:
            return Replicated(pods)
        made = DaemonSet(pods, lambda: list(self._state.all(Node)), partial(self._state.get, Node))
        self._daemon_sets.append(made)
        return made

    def made(self, owner: str, name: str, like: Pod, duration: float | None, number: int) -> Pod | None:
        """Create a pod of that owner; None where the name is taken."""
        key = f"{like.namespace}/{name}"
        if key in self._taken:
            return None
        self._taken.add(key)
        metadata = msgspec.structs.replace(like.metadata, name=name, uid=f"{owner}/{number}")
        if duration is not None:
            metadata = msgspec.structs.replace(
                metadata, annotations={**metadata.annotations, DURATION: str(duration)}
            )
        pod = Pod(metadata=metadata, template=like.template, status=NO_STATUS)
        self._owner_of[key] = self._owners[owner]
        self._put(pod)
        return pod

    def heard(self, kind: type[TypedObject], handler: ResourceHandler) -> ResourceHandler:
        """Wrap the handler so that owners receive the changes that concern them."""
        if kind is Node:
            return _ForwardingHandler(handler, self._on_node)
        return _ForwardingHandler(handler, self._on_pod) if kind is Pod else handler

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        for owner in self._daemon_sets:
            if new is not None:
                owner.saw(new)
            elif old is not None:
                owner.lost(old.name)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        owner = None if pod is None else self._owner_of.get(pod.key)
        if owner is None or pod is None:
            return
        if new is None:
            if isinstance(owner, DaemonSet):
                owner.removed(pod)
        elif new.node_name and not (old and old.node_name):
            owner.bound(new)


class _Pods:
    """Creates the pods of one owner, numbered after its name. Implements replicated.ReplicatedPods."""

    def __init__(self, workloads: Workloads, owner: str) -> None:
        self._workloads, self._owner = workloads, owner
        self._number = 0
        self.remove = workloads.remove

    def make(self, like: Pod, duration: float | None) -> Pod:
        """Create a copy of the pod with the next free name."""
        name, pod = self._owner.rpartition("/")[2], None
        while pod is None:
            number, self._number = self._number, self._number + 1
            pod = self._workloads.made(self._owner, f"{name}-{number}", like, duration, number)
        return pod


@dataclass
class _ForwardingHandler:
    """A handler that also forwards each change, as old and new object, to another function.

    Implements ResourceHandler.
    """

    handler: ResourceHandler
    changed: Callable[[Any, Any], None]
    synced: bool = False

    def on_add(self, obj: Any, /) -> None:
        """Pass on, and say so."""
        self.handler.on_add(obj)
        self.changed(None, obj)

    def on_update(self, old: Any, new: Any, /) -> None:
        """Pass on, and say so."""
        self.handler.on_update(old, new)
        self.changed(old, new)

    def on_delete(self, obj: Any, /) -> None:
        """Pass on, and say so."""
        self.handler.on_delete(obj)
        self.changed(obj, None)

    def on_synced(self) -> None:
        """Pass on."""
        self.handler.on_synced()
