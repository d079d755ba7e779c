"""Which ClusterRoles a scheduler needs: the one that all need, and those of plugins that its profiles use.

The roles themselves are in kustomize/base; the operator may bind them, and has none of their rights itself.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from berth.config import Loaded

PREFIX: Final = "berth-scheduler"
CORE: Final = PREFIX
LEADER_ELECTION: Final = f"{PREFIX}-leader-election"

_BY_PLUGIN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "affinity": frozenset({"InterPodAffinity"}),
        "spreading": frozenset({"PodTopologySpread"}),
        "preemption": frozenset({"DefaultPreemption"}),
        "volumes": frozenset({"VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"}),
        "dynamic-resources": frozenset({"DynamicResources"}),
        "pod-groups": frozenset({"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}),
    }
)


def cluster_roles(loaded: Loaded, *, has_plugins: bool) -> list[str]:
    """Give the names of the roles that hold everywhere.

    Out-of-tree plugins may ask for any event, so with them everything that can be watched is.
    """
    used = {name for profile in loaded.profiles for named in profile.points.values() for name, _ in named}
    roles = [CORE]
    roles += [
        f"{PREFIX}-{suffix}"
        for suffix, names in _BY_PLUGIN.items()
        if has_plugins or not names.isdisjoint(used)
    ]
    return roles
