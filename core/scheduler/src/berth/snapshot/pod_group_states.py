"""Which pods of each group there are, and how far each has come.

    unscheduled --assume--> assumed --assigned--> assigned
    assumed --forget--> unscheduled
    any --delete--> gone; a group without pods is dropped

The cache keeps them as things are now; a pod-group cycle tries on a copy of its group.

Source: pkg/scheduler/backend/cache/podgroupstate.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from berth.objects.pods.pod import Pod


class GroupKey(NamedTuple):
    """A group's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TreeKey(NamedTuple):
    """The namespace and name of a CompositePodGroup; it is never equal to the key of a pod group."""

    namespace: str
    name: str
    composite: bool = True

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


AnyKey: TypeAlias = GroupKey | TreeKey


def group_of(pod: Pod) -> GroupKey | None:
    """The group that the pod is scheduled with, None where it is alone."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return GroupKey(pod.namespace, group.pod_group_name)


class PodGroupState(msgspec.Struct):
    """The pods of one group by UID: all, those assumed (with their node), and those bound to one."""

    pods: dict[str, Pod] = msgspec.field(default_factory=dict)
    assumed: dict[str, Pod] = msgspec.field(default_factory=dict)
    assigned: set[str] = msgspec.field(default_factory=set)

    @property
    def unscheduled(self) -> list[Pod]:
        """The pods without a node."""
        return [pod for pod in self.pods.values() if not self._on_node(pod)]

    @property
    def scheduled_count(self) -> int:
        """How many pods have a node."""
        return len(self.assumed) + len(self.assigned)

    @property
    def scheduled(self) -> list[Pod]:
        """The pods with a node; each says which."""
        if not (self.assumed or self.assigned):
            return []
        return [self.assumed.get(uid, pod) for uid, pod in self.pods.items() if self._on_node(pod)]

    @property
    def standing(self) -> dict[str, str]:
        """How far each pod is, by name."""
        return {
            pod.name: "assumed" if uid in self.assumed else "assigned" if uid in self.assigned else "waits"
            for uid, pod in self.pods.items()
        }

    def copy(self) -> "PodGroupState":
        """The same state, to be changed apart."""
        return PodGroupState(dict(self.pods), dict(self.assumed), set(self.assigned))

    def _on_node(self, pod: Pod) -> bool:
        return pod.uid in self.assumed or pod.uid in self.assigned


class PodGroupStates:
    """All groups that have pods."""

    def __init__(self) -> None:
        self._groups: dict[AnyKey, PodGroupState] = {}
        self.followers: list[Callable[[GroupKey], None]] = []
        """Called when a pod came to that group, or went."""

    def get(self, key: AnyKey) -> PodGroupState:
        """The group's state.

        Raises: KeyError with upstream's text where no pod of the group is known.
        """
        state = self._groups.get(key)
        if state is None:
            raise KeyError(f"pod group state not found for pod group {key}")
        return state

    def known(self, key: AnyKey) -> PodGroupState:
        """The group's state, an empty one where no pod of it is known."""
        return self._groups.get(key) or PodGroupState()

    def __iter__(self) -> Iterator[AnyKey]:
        return iter(self._groups)

    def copy_of(self, key: AnyKey) -> "PodGroupStates":
        """That group's state, to be changed apart: what its pod-group cycle works on."""
        twin = PodGroupStates()
        if key in self._groups:
            twin._groups[key] = self._groups[key].copy()
        return twin

    def add(self, pod: Pod) -> None:
        """A pod is there: assigned if it is on a node, unscheduled otherwise."""
        key = group_of(pod)
        if key is None:
            return
        state = self._groups.setdefault(key, PodGroupState())
        came = pod.uid not in state.pods
        state.pods[pod.uid] = pod
        state.assumed.pop(pod.uid, None)
        if pod.node_name:
            state.assigned.add(pod.uid)
        else:
            state.assigned.discard(pod.uid)
        if came:
            self._changed(key)

    def update(self, pod: Pod) -> None:
        """A pod without a node changed; how far it has come stays as it is."""
        state = self._of(pod)
        if state is not None and pod.uid in state.pods:
            state.pods[pod.uid] = pod

    def assume(self, pod: Pod) -> None:
        """A pod was given a node, which it carries."""
        key = group_of(pod)
        if key is None:
            return
        state = self._groups.get(key)
        if state is None:
            state = self._groups[key] = PodGroupState({pod.uid: pod.placed_on("")})
            self._changed(key)
        if pod.uid in state.pods and pod.uid not in state.assigned:
            state.assumed[pod.uid] = pod

    def forget(self, pod: Pod) -> None:
        """The node was taken back; the pod is as the watch last showed it, unless it is gone."""
        state = self._of(pod)
        if state is None or state.assumed.pop(pod.uid, None) is None:
            return
        if state.pods[pod.uid].node_name:
            state.assigned.add(pod.uid)

    def delete(self, pod: Pod) -> None:
        """The pod is gone."""
        key, state = group_of(pod), self._of(pod)
        if key is None or state is None:
            return
        went = state.pods.pop(pod.uid, None) is not None
        state.assumed.pop(pod.uid, None)
        state.assigned.discard(pod.uid)
        if not state.pods:
            del self._groups[key]
        if went:
            self._changed(key)

    def _changed(self, key: GroupKey) -> None:
        for follower in self.followers:
            follower(key)

    def _of(self, pod: Pod) -> PodGroupState | None:
        key = group_of(pod)
        return None if key is None else self._groups.get(key)
