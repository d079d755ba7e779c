"""Which pods of each group there are, and how far each has come.

    unscheduled --assume--> assumed --assigned--> assigned
    assumed --forget--> unscheduled
    any --delete--> gone; a group without pods is dropped

Source: kube-scheduler pod group state (v1.36); spec/core.md 7.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from berth.objects.pod import Pod


class GroupKey(NamedTuple):
    """A group's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def group_of(pod: Pod) -> GroupKey | None:
    """The group that the pod is scheduled with, None where it is alone."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return GroupKey(pod.namespace, group.pod_group_name)


@dataclass(slots=True)
class PodGroupState:
    """The pods of one group by UID: all, and those assumed on a node and bound to one."""

    pods: dict[str, Pod] = field(default_factory=dict)
    assumed: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)

    @property
    def unscheduled(self) -> list[Pod]:
        """The pods without a node, by name."""
        waiting = (pod for uid, pod in self.pods.items() if uid not in self.assumed | self.assigned)
        return sorted(waiting, key=lambda pod: pod.name)

    @property
    def scheduled(self) -> list[Pod]:
        """The pods with a node; each says which."""
        return [pod for uid, pod in self.pods.items() if uid in self.assumed | self.assigned]

    def copy(self) -> "PodGroupState":
        """The same state, to be changed apart."""
        return PodGroupState(dict(self.pods), set(self.assumed), set(self.assigned))


class PodGroupStates:
    """All groups that have pods; `generation` grows with every change."""

    def __init__(self) -> None:
        self.generation = 0
        self._groups: dict[GroupKey, PodGroupState] = {}

    def get(self, key: GroupKey) -> PodGroupState:
        """The group's state.

        Raises: KeyError with upstream's text where no pod of the group is known.
        """
        state = self._groups.get(key)
        if state is None:
            raise KeyError(f"pod group state not found for pod group {key}")
        return state

    def known(self, key: GroupKey) -> PodGroupState:
        """The group's state, an empty one where no pod of it is known."""
        return self._groups.get(key) or PodGroupState()

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._groups)

    def copy(self) -> "PodGroupStates":
        """All states, to be changed apart: what a pod-group cycle works on."""
        twin = PodGroupStates()
        twin.generation = self.generation
        twin._groups = {key: state.copy() for key, state in self._groups.items()}
        return twin

    def add(self, pod: Pod) -> None:
        """A pod is there: assigned if it is on a node, unscheduled otherwise."""
        state = self._of(pod, create=True)
        if state is None:
            return
        state.pods[pod.uid] = pod
        state.assumed.discard(pod.uid)
        if pod.node_name:
            state.assigned.add(pod.uid)
        else:
            state.assigned.discard(pod.uid)

    def update(self, pod: Pod) -> None:
        """A pod without a node changed; where it is on its way stays as it is."""
        state = self._of(pod)
        if state is not None and pod.uid in state.pods and pod.uid not in state.assumed:
            state.pods[pod.uid] = pod

    def assume(self, pod: Pod) -> None:
        """A pod was given a node, which it carries."""
        known = group_of(pod) in self._groups
        state = self._of(pod, create=True)
        if state is None or (known and pod.uid not in state.pods):
            return
        if pod.uid not in state.assigned:
            state.pods[pod.uid] = pod
            state.assumed.add(pod.uid)

    def forget(self, pod: Pod) -> None:
        """The node was taken back; the pod is as it was before, unless it is gone."""
        state = self._of(pod)
        if state is not None and pod.uid in state.assumed:
            state.assumed.discard(pod.uid)
            state.pods[pod.uid] = pod.placed_on("")

    def delete(self, pod: Pod) -> None:
        """The pod is gone."""
        key, state = group_of(pod), self._of(pod)
        if key is None or state is None:
            return
        state.pods.pop(pod.uid, None)
        state.assumed.discard(pod.uid)
        state.assigned.discard(pod.uid)
        if not state.pods:
            del self._groups[key]

    def _of(self, pod: Pod, *, create: bool = False) -> PodGroupState | None:
        key = group_of(pod)
        if key is None:
            return None
        self.generation += 1
        return self._groups.setdefault(key, PodGroupState()) if create else self._groups.get(key)
