"""Pods that GangScheduling holds back: which of them need not be asked about a pod or a group that comes.

A pod brings on only its own gang, and only if that is complete with it. Without this each pod that comes
would have all gated pods asked, one by one: a thousand pods of a gang half a million times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berth.framework.mirrors.listers import Store
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod
from berth.plugins.gang_scheduling import GangScheduling
from berth.queue.pools.unschedulable_pods import Group
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates, group_of

GATE = GangScheduling.__name__


@dataclass(frozen=True, slots=True)
class GangGate:
    """Knows which gangs are complete."""

    states: PodGroupStates
    groups: Store[PodGroup]

    def leaves_out(self, new: Any) -> Callable[[Group], bool] | None:
        """Which records the coming of that object cannot help; None where it is no concern of gangs."""
        if isinstance(new, Pod):
            key = group_of(new)
        elif isinstance(new, PodGroup):
            key = GroupKey(new.namespace, new.name)
        else:
            return None
        helped = key if key is not None and self._complete(key) else None
        return lambda group: group.gating_plugin == GATE and (helped is None or group.pod_group != helped)

    def _complete(self, key: GroupKey) -> bool:
        group = self.groups.get(key.name, key.namespace)
        return group is not None and len(self.states.known(key).pods) >= (group.min_count or 0)
