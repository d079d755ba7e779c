"""What plugins that look at pod groups ask of the rest of the scheduler."""

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.status import PluginError
from berth.objects.pod_groups import PodGroup
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates


def group_object(handle: Handle, key: GroupKey) -> PodGroup:
    """The group as its owner wrote it.

    Raises: PluginError with the API's text where there is none.
    """
    group = handle.listers.pod_groups.get(key.name, key.namespace)
    if group is None:
        raise PluginError(f'podgroup.scheduling.k8s.io "{key.name}" not found')
    return group


def group_states(handle: Handle, state: CycleState | None = None) -> PodGroupStates:
    """Which pods groups have: a pod-group cycle's own view where its state holds one, else the live one."""
    own: PodGroupStates | None = state.get(PodGroupStates) if state is not None else None
    return handle.pod_groups if own is None else own


def in_trial(state: CycleState) -> bool:
    """Whether a pod-group cycle only tries how things would be."""
    return state.get(PodGroupStates) is not None
