"""Which kinds a scheduler has to know for which plugins: a kind that no plugin asks about is not watched.

The operator gives a scheduler the rights for these kinds and no others; kustomize/base/scheduler_rights.yaml
has them in the same groups.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from berth.client import resources
from berth.client.resources import Resource
from berth.config import ResolvedProfile

NEEDED_BY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "affinity": frozenset({"InterPodAffinity"}),
        "spreading": frozenset({"PodTopologySpread"}),
        "preemption": frozenset({"DefaultPreemption"}),
        "volumes": frozenset({"VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"}),
        "dynamic-resources": frozenset({"DynamicResources"}),
    }
)
"""The plugins that ask about each group of kinds."""

_GROUPS: Final[Mapping[Resource, str]] = MappingProxyType(
    {
        resources.NAMESPACES: "affinity",
        resources.SERVICES: "spreading",
        resources.REPLICATION_CONTROLLERS: "spreading",
        resources.REPLICA_SETS: "spreading",
        resources.STATEFUL_SETS: "spreading",
        resources.POD_DISRUPTION_BUDGETS: "preemption",
        resources.PERSISTENT_VOLUMES: "volumes",
        resources.PERSISTENT_VOLUME_CLAIMS: "volumes",
        resources.STORAGE_CLASSES: "volumes",
        resources.CSI_NODES: "volumes",
        resources.CSI_DRIVERS: "volumes",
        resources.CSI_STORAGE_CAPACITIES: "volumes",
        resources.VOLUME_ATTACHMENTS: "volumes",
        resources.RESOURCE_CLAIMS: "dynamic-resources",
        resources.RESOURCE_SLICES: "dynamic-resources",
        resources.DEVICE_TAINT_RULES: "dynamic-resources",
    }
)


def needed_groups(profiles: Iterable[ResolvedProfile], *, out_of_tree: bool) -> frozenset[str]:
    """Give the groups that these profiles need; sidecars may ask for any event."""
    used = {name for profile in profiles for named in profile.points.values() for name, _ in named}
    return frozenset(
        group for group, plugins in NEEDED_BY.items() if out_of_tree or not plugins.isdisjoint(used)
    )


def is_needed(resource: Resource, groups: frozenset[str]) -> bool:
    """Say whether a kind is asked about; those of no group always are."""
    group = _GROUPS.get(resource)
    return group is None or group in groups
