"""Extension points, the in-tree plugins with the points each implements, and the default list.

Source: pkg/scheduler/framework/plugins/registry.go, apis/config/v1/default_plugins.go (Kubernetes v1.36).
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from berth.config.feature_gates import FeatureGates
from berth.config.types import PluginEntry, Plugins, PluginSet


class ExtensionPoint(StrEnum):
    """Where plugins hook in, spelled as in KubeSchedulerConfiguration, in the order of the documentation."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"

    @property
    def attribute(self) -> str:
        """The name of this point's set in `Plugins`."""
        return self.name.lower()

    @property
    def interface(self) -> str:
        """The name that messages give to what a plugin implements here."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"


Catalogue: TypeAlias = Mapping[str, frozenset[ExtensionPoint]]

_P = ExtensionPoint
_PRE_FILTERS = frozenset({_P.PRE_FILTER, _P.FILTER})
_FILTER_AND_SCORE = frozenset({_P.FILTER, _P.PRE_SCORE, _P.SCORE})
_ALL_FOUR = _PRE_FILTERS | _FILTER_AND_SCORE

IN_TREE: Catalogue = MappingProxyType(
    {
        "SchedulingGates": frozenset({_P.PRE_ENQUEUE}),
        "PrioritySort": frozenset({_P.QUEUE_SORT}),
        "NodeUnschedulable": frozenset({_P.FILTER}),
        "NodeName": frozenset({_P.FILTER}),
        "TaintToleration": _FILTER_AND_SCORE,
        "NodeAffinity": _ALL_FOUR,
        "NodePorts": _PRE_FILTERS,
        "NodeResourcesFit": _ALL_FOUR | {_P.PLACEMENT_SCORE},
        "VolumeRestrictions": _PRE_FILTERS,
        "NodeVolumeLimits": _PRE_FILTERS,
        "VolumeBinding": _ALL_FOUR | {_P.RESERVE, _P.PRE_BIND},
        "VolumeZone": _PRE_FILTERS,
        "PodTopologySpread": _ALL_FOUR,
        "InterPodAffinity": _ALL_FOUR,
        "DynamicResources": _PRE_FILTERS
        | {_P.PRE_ENQUEUE, _P.POST_FILTER, _P.SCORE, _P.RESERVE, _P.PRE_BIND},
        "DefaultPreemption": frozenset({_P.PRE_ENQUEUE, _P.POST_FILTER}),
        "NodeResourcesBalancedAllocation": frozenset({_P.PRE_SCORE, _P.SCORE}),
        "ImageLocality": frozenset({_P.SCORE}),
        "DefaultBinder": frozenset({_P.BIND}),
        "NodeDeclaredFeatures": _PRE_FILTERS,
        "GangScheduling": frozenset({_P.PRE_ENQUEUE, _P.PERMIT}),
        "TopologyPlacementGenerator": frozenset({_P.PLACEMENT_GENERATE}),
        "PodGroupPodsCount": frozenset({_P.PLACEMENT_SCORE}),
        "JointPlacement": frozenset({_P.PRE_FILTER}),
    }
)


def in_tree(gates: FeatureGates) -> Catalogue:
    """Give the in-tree plugins of the followed release, with the points that each implements in it."""
    if not gates.rules.queues_groups:
        return IN_TREE
    return MappingProxyType({**IN_TREE, "GangScheduling": frozenset({_P.PRE_ENQUEUE})})


# Berth's own: in no default list, whatever the gates say.
OWN = frozenset({"JointPlacement"})

# Folded into NodeVolumeLimits; naming one is an error of its own.
REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})

_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "PodGroupPodsCount": 1,
}
# What a gate adds to the default list; the catalogue's order is the list's order.
_GATES = {
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GangScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}


def default_plugins(gates: FeatureGates) -> Plugins:
    """Give the plugin sets of a profile that names no plugins."""
    names = [
        name for name in IN_TREE if name not in OWN and (name not in _GATES or gates.enabled(_GATES[name]))
    ]
    return Plugins(
        multi_point=PluginSet(
            enabled=tuple(PluginEntry(name=name, weight=_WEIGHTS.get(name)) for name in names)
        )
    )
