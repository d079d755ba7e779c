"""What plugins that look at pod groups ask of the rest of the scheduler."""

from typing import overload

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.mirrors.group_trees import AnyGroup, kind_of
from berth.framework.status import PluginError
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_group_states import AnyKey, GroupKey, PodGroupStates, TreeKey


@overload
def group_object(handle: Handle, key: GroupKey) -> PodGroup: ...
@overload
def group_object(handle: Handle, key: TreeKey) -> CompositePodGroup: ...
def group_object(handle: Handle, key: AnyKey) -> AnyGroup:
    """The group as its owner wrote it.

    Raises: PluginError with the API's text where there is none.
    """
    group = handle.listers.trees.get(key)
    if group is None:
        raise PluginError(f'{kind_of(key)}.scheduling.k8s.io "{key.name}" not found')
    return group


def scheduled_pods(handle: Handle, state: CycleState, key: AnyKey) -> list[Pod]:
    """The pods with a node of the group, or of all pod groups below it."""
    states = group_states(handle, state)
    if isinstance(key, GroupKey):
        return states.known(key).scheduled
    live = group_states(handle)
    return [pod for leaf in handle.listers.trees.leaves(key) for pod in live.known(leaf).scheduled]


def group_states(handle: Handle, state: CycleState | None = None) -> PodGroupStates:
    """Which pods groups have: a pod-group cycle's own view where its state holds one, else the live one."""
    own: PodGroupStates | None = state.get(PodGroupStates) if state is not None else None
    return handle.pod_groups if own is None else own


def in_trial(state: CycleState) -> bool:
    """Whether a pod-group cycle only tries how things would be."""
    return state.get(PodGroupStates) is not None
