"""Arguments of the in-tree plugins, one struct for each plugin that takes any, defaults filled in.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go (Kubernetes v1.36).
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeAlias

from berth.config.duration import Duration
from berth.config.wire import Flag, GoType, Int32, Int64, Section, Span, Text


class ResourceSpec(Section, frozen=True):
    """A resource and its weight in a score."""

    GO: ClassVar[str] = "v1.ResourceSpec"

    name: Text = ""
    weight: Int64 = 1


class UtilizationShapePoint(Section, frozen=True):
    """A point of a piecewise linear function from utilization (0..100) to score (0..10)."""

    GO: ClassVar[str] = "v1.UtilizationShapePoint"

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(Section, frozen=True):
    """The scoring function of the RequestedToCapacityRatio strategy."""

    GO: ClassVar[str] = "v1.RequestedToCapacityRatioParam"

    shape: tuple[UtilizationShapePoint, ...] = ()


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class ScoringStrategy(Section, frozen=True):
    """How NodeResourcesFit scores: by which strategy, over which resources."""

    GO: ClassVar[str] = "v1.ScoringStrategy"

    # Once a strategy is written its type must be written too: there is no default.
    type: Annotated[str, GoType("v1.ScoringStrategyType")] = ""
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeSelectorRequirement(Section, frozen=True):
    """One comparison of a node's label or field; `values` is None where none were written."""

    GO: ClassVar[str] = "v1.NodeSelectorRequirement"

    key: Text = ""
    operator: Annotated[str, GoType("v1.NodeSelectorOperator")] = ""
    values: tuple[Text, ...] | None = None


class NodeSelectorTerm(Section, frozen=True):
    """Comparisons that must all hold."""

    GO: ClassVar[str] = "v1.NodeSelectorTerm"

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Section, frozen=True):
    """Terms of which one must hold."""

    GO: ClassVar[str] = "v1.NodeSelector"

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Section, frozen=True):
    """A term and what meeting it is worth."""

    GO: ClassVar[str] = "v1.PreferredSchedulingTerm"

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinitySpec(Section, frozen=True):
    """A node affinity as in a pod's spec."""

    GO: ClassVar[str] = "v1.NodeAffinity"

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class LabelSelectorRequirement(Section, frozen=True):
    """One comparison of a label."""

    GO: ClassVar[str] = "v1.LabelSelectorRequirement"

    key: Text = ""
    operator: Annotated[str, GoType("v1.LabelSelectorOperator")] = ""
    values: tuple[Text, ...] | None = None


class LabelSelectorSpec(Section, frozen=True):
    """A label selector as written; default constraints must not have one."""

    GO: ClassVar[str] = "v1.LabelSelector"

    match_labels: Mapping[str, Text] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class TopologySpreadConstraint(Section, frozen=True):
    """A default topology spread constraint; the selector is deduced for each pod."""

    GO: ClassVar[str] = "v1.TopologySpreadConstraint"

    max_skew: Int32 = 0
    topology_key: Text = ""
    when_unsatisfiable: Annotated[str, GoType("v1.UnsatisfiableConstraintAction")] = ""
    label_selector: LabelSelectorSpec | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Annotated[str, GoType("v1.NodeInclusionPolicy")] | None = None
    node_taints_policy: Annotated[str, GoType("v1.NodeInclusionPolicy")] | None = None
    match_label_keys: tuple[Text, ...] = ()


class DefaultPreemptionArgs(Section, frozen=True):
    """How many candidate nodes preemption looks at."""

    GO: ClassVar[str] = "v1.DefaultPreemptionArgs"

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Section, frozen=True):
    """Time limits of device allocation; None where the feature gate behind one is off."""

    GO: ClassVar[str] = "v1.DynamicResourcesArgs"

    filter_timeout: Span | None = None
    binding_timeout: Span | None = None


class InterPodAffinityArgs(Section, frozen=True):
    """Weight of required terms of placed pods, and whether their preferred terms count."""

    GO: ClassVar[str] = "v1.InterPodAffinityArgs"

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: Flag = False


class JointPlacementArgs(Section, frozen=True):
    """How large a group may be that is planned as a whole, and how long its plan is searched for.

    Berth's own: kube-scheduler has no such plugin.
    """

    GO: ClassVar[str] = "v1.JointPlacementArgs"

    max_pods: Int32 = 64
    max_branches: Int32 = 200
    time_limit: Span = Duration.of_seconds(2)


class NodeAffinityArgs(Section, frozen=True):
    """A node affinity that is added to every pod's own."""

    GO: ClassVar[str] = "v1.NodeAffinityArgs"

    added_affinity: NodeAffinitySpec | None = None


class NodeResourcesBalancedAllocationArgs(Section, frozen=True):
    """The resources whose use should be balanced."""

    GO: ClassVar[str] = "v1.NodeResourcesBalancedAllocationArgs"

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeResourcesFitArgs(Section, frozen=True):
    """What fit ignores and how it scores."""

    GO: ClassVar[str] = "v1.NodeResourcesFitArgs"

    ignored_resources: tuple[Text, ...] = ()
    ignored_resource_groups: tuple[Text, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class PodTopologySpreadArgs(Section, frozen=True):
    """Constraints for pods that have none of their own; System stands for two built-in ones."""

    GO: ClassVar[str] = "v1.PodTopologySpreadArgs"

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Annotated[str, GoType("v1.PodTopologySpreadConstraintsDefaulting")] = "System"


class VolumeBindingArgs(Section, frozen=True):
    """How long binding waits for volumes, and how storage capacity is scored (None: not at all)."""

    GO: ClassVar[str] = "v1.VolumeBindingArgs"

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


InTreeArgs: TypeAlias = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | JointPlacementArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

# The group's args kinds: plugin name to type. A kind is the plugin's name with "Args" behind it.
ARGS_TYPES: Mapping[str, type[InTreeArgs]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "JointPlacement": JointPlacementArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
