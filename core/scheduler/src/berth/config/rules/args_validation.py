"""Rules for the plugins' arguments. Each check gives its complaints in the order upstream reports them.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from berth.config.duration import Duration
from berth.config.feature_gates import FeatureGates
from berth.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    JointPlacementArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    TopologySpreadConstraint,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from berth.config.rules.affinity_validation import affinity_errors
from berth.config.rules.field_errors import EnumText, duplicate, forbidden, invalid, required, unsupported
from berth.config.rules.names import qualified_name_problems

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_RATIO = STRATEGIES[2]
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_PERCENT = 100
_MAX_SHAPE_SCORE = 10
_MAX_PLANNED_PODS = 64
_MAX_PLANNING = Duration.of_seconds(10)
_MAX_BRANCHES = 100_000
_ONE_SECOND = Duration.of_seconds(1)
_PERCENT_RANGE = "not in valid range [0, 100]"


def args_errors(plugin: str, args: Any, path: str, gates: FeatureGates) -> list[str]:
    """Give what is wrong with a plugin's arguments as far as it is checked with the whole file.

    NodeResourcesFit is checked when it is built: see `fit_errors`.
    """
    check = _CHECKS.get(plugin)
    return list(check(args, path, gates)) if check else []


def _preemption(args: DefaultPreemptionArgs, path: str, _gates: FeatureGates) -> Iterator[str]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    relative_path, absolute_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= _PERCENT:
        yield invalid(relative_path, percentage, _PERCENT_RANGE)
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        together = "cannot be zero at the same time as"
        yield invalid(relative_path, 0, f"{together} minCandidateNodesAbsolute")
        yield invalid(absolute_path, 0, f"{together} minCandidateNodesPercentage")


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str, _gates: FeatureGates) -> Iterator[str]:
    if not 0 <= args.hard_pod_affinity_weight <= _PERCENT:
        yield invalid(f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, _PERCENT_RANGE)


def _joint_placement(args: JointPlacementArgs, path: str, _gates: FeatureGates) -> Iterator[str]:
    if not 1 < args.max_pods <= _MAX_PLANNED_PODS:
        yield invalid(f"{path}.maxPods", args.max_pods, f"not in valid range [2, {_MAX_PLANNED_PODS}]")
    if not 0 < args.max_branches <= _MAX_BRANCHES:
        yield invalid(f"{path}.maxBranches", args.max_branches, f"not in valid range [1, {_MAX_BRANCHES}]")
    if not 0 < args.time_limit <= _MAX_PLANNING:
        yield invalid(f"{path}.timeLimit", args.time_limit, f"not in valid range (0s, {_MAX_PLANNING}]")


def _node_affinity(args: NodeAffinityArgs, path: str, _gates: FeatureGates) -> Iterator[str]:
    if args.added_affinity is not None:
        yield from affinity_errors(args.added_affinity, f"{path}.addedAffinity")


def _balanced(args: NodeResourcesBalancedAllocationArgs, path: str, _gates: FeatureGates) -> Iterator[str]:
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        place = f"{path}.resources[{index}]"
        if resource.name in seen:
            yield duplicate(f"{place}.name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{place}.weight", resource.weight, "must be 1")


def _spread(args: PodTopologySpreadArgs, path: str, _gates: FeatureGates) -> Iterator[str]:
    if args.defaulting_type not in {"System", "List"}:
        yield unsupported(f"{path}.defaultingType", EnumText(args.defaulting_type), ("System", "List"))
    if args.defaulting_type == "System" and args.default_constraints:
        yield invalid(f"{path}.defaultingType", "System", "when .defaultConstraints are not empty")
    earlier: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        place = f"{path}.defaultConstraints[{index}]"
        yield from _constraint(constraint, place)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in earlier:
            yield duplicate(place, f"{{{pair[0]}, {pair[1]}}}")
        earlier.add(pair)


def _constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from name_errors(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in _ACTIONS:
        yield unsupported(f"{path}.whenUnsatisfiable", EnumText(constraint.when_unsatisfiable), _ACTIONS)
    if constraint.label_selector is not None:
        reason = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(f"{path}.labelSelector", reason)


def _volume_binding(args: VolumeBindingArgs, path: str, gates: FeatureGates) -> Iterator[str]:
    if args.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, rule)
    if gates.enabled("StorageCapacityScoring"):
        yield from shape_errors(args.shape or (), f"{path}.shape")
    elif args.shape is not None:
        rule = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid(f"{path}.shape", [_go_fields(point) for point in args.shape], rule)


def _go_fields(section: msgspec.Struct) -> dict[str, Any]:
    """Give a struct as upstream prints its internal ones, with capitalised field names."""
    return {name.capitalize(): getattr(section, name) for name in section.__struct_fields__}


def _dynamic_resources(args: DynamicResourcesArgs, path: str, gates: FeatureGates) -> Iterator[str]:
    if args.filter_timeout is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            yield forbidden(f"{path}.filterTimeout", "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout < 0:
            yield invalid(f"{path}.filterTimeout", args.filter_timeout, "must be zero or positive")
    if args.binding_timeout is not None:
        if not (
            gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")
        ):
            off = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(f"{path}.bindingTimeout", off)
        elif args.binding_timeout < _ONE_SECOND:
            yield invalid(f"{path}.bindingTimeout", args.binding_timeout, "must be at least 1 second")


def fit_errors(args: NodeResourcesFitArgs) -> list[str]:
    """Give what is wrong with NodeResourcesFit's arguments, with paths that begin at them."""
    return [*_ignored_errors(args), *_strategy_errors(args.scoring_strategy)]


def _ignored_errors(args: NodeResourcesFitArgs) -> Iterator[str]:
    for index, name in enumerate(args.ignored_resources):
        yield from name_errors(f"ignoredResources[{index}]", name)
    for index, group in enumerate(args.ignored_resource_groups):
        path = f"ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(path, group, "resource group name can't contain '/'")
        yield from name_errors(path, group)


def _strategy_errors(strategy: ScoringStrategy) -> Iterator[str]:
    path = "scoringStrategy"
    if strategy.type not in STRATEGIES:
        yield unsupported(f"{path}.type", EnumText(strategy.type), STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 1 <= resource.weight <= _PERCENT:
            rule = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(f"{path}.resources[{index}].weight", resource.weight, rule)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if strategy.type == _RATIO:
        if ratio is None:
            yield required(ratio_path, f"must be specified when type is {_RATIO}")
        else:
            yield from shape_errors(ratio.shape, f"{ratio_path}.shape")
    elif ratio is not None:
        yield forbidden(ratio_path, f"must be nil when type is not {_RATIO}")


def shape_errors(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[str]:
    """Give what is wrong with a scoring function."""
    if not shape:
        yield required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            rule = "values must be sorted in increasing order"
            yield invalid(f"{path}[{index}].utilization", shape[index].utilization, rule)
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= _PERCENT:
            yield invalid(f"{path}[{index}].utilization", point.utilization, _PERCENT_RANGE)
        if not 0 <= point.score <= _MAX_SHAPE_SCORE:
            yield invalid(f"{path}[{index}].score", point.score, "not in valid range [0, 10]")


def name_errors(path: str, name: str) -> Iterator[str]:
    """Give what is wrong with a qualified name, one complaint for each rule it breaks."""
    for problem in qualified_name_problems(name):
        yield invalid(path, name, problem)


_CHECKS: Mapping[str, Callable[[Any, str, FeatureGates], Iterator[str]]] = MappingProxyType(
    {
        "DefaultPreemption": _preemption,
        "DynamicResources": _dynamic_resources,
        "InterPodAffinity": _inter_pod_affinity,
        "JointPlacement": _joint_placement,
        "NodeAffinity": _node_affinity,
        "NodeResourcesBalancedAllocation": _balanced,
        "PodTopologySpread": _spread,
        "VolumeBinding": _volume_binding,
    }
)
