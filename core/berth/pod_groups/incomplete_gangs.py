"""Gangs of which too few pods are known: nothing but more of them helps their pods.

Each pod of a large gang that comes would have all those before it asked, one by one, whether it helps.
"""

from collections.abc import Callable

from berth.framework.listers import Store
from berth.objects.pod import Pod
from berth.objects.pod_groups import PodGroup
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates, group_of


def in_no_incomplete_gang(states: PodGroupStates, groups: Store[PodGroup]) -> Callable[[Pod], bool]:
    """Whether asking about a waiting pod makes sense now: PreEnqueue would only hold it back again.

    Holds for one moment, in which each group is looked at once.
    """
    known: dict[GroupKey, bool] = {}

    def asked(pod: Pod) -> bool:
        key = group_of(pod)
        if key is None:
            return True
        if key not in known:
            known[key] = not _incomplete(key)
        return known[key]

    def _incomplete(key: GroupKey) -> bool:
        group = groups.get(key.name, key.namespace)
        needed = None if group is None else group.min_count
        return needed is not None and len(states.known(key).pods) < needed

    return asked
