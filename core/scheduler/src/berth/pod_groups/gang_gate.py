"""Pods that GangScheduling holds back: which of them need not be asked about a pod or a group that comes.

A pod brings on only its own gang, and only if that is complete with it. Without this each pod that comes
would have all gated pods asked, one by one: a thousand pods of a gang half a million times.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.objects.pods.pod import Pod
from berth.plugins.gang_scheduling import GangScheduling
from berth.queue.pools.unschedulable_pods import Group
from berth.snapshot.pod_group_states import AnyKey, GroupKey, PodGroupStates, group_of

GATE = GangScheduling.__name__


class GangGate(msgspec.Struct, frozen=True):
    """Knows which gangs are complete."""

    states: PodGroupStates
    trees: GroupTrees

    def leaves_out(self, new: Any) -> Callable[[Group], bool] | None:
        """Which records the coming of that object cannot help; None where it is no concern of gangs."""
        if isinstance(new, Pod):
            key: AnyKey | None = group_of(new)
        elif isinstance(new, PodGroup | CompositePodGroup):
            key = key_of(new)
        else:
            return None
        root = None if key is None else self.trees.root(key)
        helped = key_of(root) if root is not None and self._complete(root) else None
        return lambda group: group.gating_plugin == GATE and (helped is None or self._root(group) != helped)

    def _root(self, group: Group) -> AnyKey | None:
        return None if group.pod_group is None else self.trees.root_key(group.pod_group)

    def _complete(self, root: AnyGroup) -> bool:
        if isinstance(root, CompositePodGroup):
            return self.trees.is_complete(key_of(root))
        return len(self.states.known(GroupKey(root.namespace, root.name)).pods) >= (root.min_count or 0)
