"""The in-tree plugins by name: what a profile may name beside plugins out of tree."""

from collections.abc import Mapping

from berth.plugins.default_binder import DefaultBinder
from berth.plugins.default_preemption import DefaultPreemption
from berth.plugins.dynamic_resources import DynamicResources
from berth.plugins.gang_scheduling import GangScheduling
from berth.plugins.image_locality import ImageLocality
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.inter_pod_affinity import InterPodAffinity
from berth.plugins.joint_placement import JointPlacement
from berth.plugins.node_affinity import NodeAffinity
from berth.plugins.node_declared_features import NodeDeclaredFeatures
from berth.plugins.node_name import NodeName
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.plugins.node_volume_limits import NodeVolumeLimits
from berth.plugins.pod_group_pods_count import PodGroupPodsCount
from berth.plugins.pod_topology_spread import PodTopologySpread
from berth.plugins.priority_sort import PrioritySort
from berth.plugins.scheduling_gates import SchedulingGates
from berth.plugins.taint_toleration import TaintToleration
from berth.plugins.topology_placement_generator import TopologyPlacementGenerator
from berth.plugins.volume_binding import VolumeBinding
from berth.plugins.volume_restrictions import VolumeRestrictions
from berth.plugins.volume_zone import VolumeZone

IN_TREE: Mapping[str, type[InTreePlugin]] = {
    plugin.__name__: plugin
    for plugin in (
        SchedulingGates,
        PrioritySort,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        DynamicResources,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        DefaultBinder,
        NodeDeclaredFeatures,
        DefaultPreemption,
        GangScheduling,
        TopologyPlacementGenerator,
        PodGroupPodsCount,
        JointPlacement,
    )
}
