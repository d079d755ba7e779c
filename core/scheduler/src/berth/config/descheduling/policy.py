"""A DeschedulerPolicy: profiles of strategies with their arguments, as sigs.k8s.io/descheduler writes them.

What is in the schema and not followed here has a place, too: it is refused by name where it is set.

Source: pkg/api/v1alpha2/types.go, pkg/framework/plugins/*/types.go and defaults.go (descheduler v0.36).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec

from berth.config.descheduling.metrics import (
    MetricsCollector,
    MetricsProvider,
    MetricsUtilization,
    PrometheusServer,
)
from berth.config.descheduling.policy_part import PolicyPart

API_VERSION: Final = "descheduler/v1alpha2"
KIND: Final = "DeschedulerPolicy"
DEFAULT_EVICTOR: Final = "DefaultEvictor"

Count = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
ExitCode = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class LabelRequirement(PolicyPart, frozen=True):
    """A condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class PolicySelector(PolicyPart, frozen=True):
    """A label selector."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()


class Namespaces(PolicyPart, frozen=True):
    """The only namespaces that count, or those that do not."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def has(self, namespace: str) -> bool:
        """Whether pods of that namespace count."""
        return namespace in self.include if self.include else namespace not in self.exclude


ALL_NAMESPACES: Final = Namespaces()


class Args(PolicyPart, frozen=True):
    """The arguments of a plugin."""

    api_version: str = ""
    kind: str = ""


class ChosenPods(Args, frozen=True):
    """Arguments of a strategy that looks at some pods only."""

    namespaces: Namespaces = ALL_NAMESPACES
    label_selector: PolicySelector | None = None


class NodeAffinityArgs(ChosenPods, frozen=True):
    """Which kinds of node affinity count."""

    node_affinity_type: tuple[str, ...] = ()


class NodeTaintsArgs(ChosenPods, frozen=True):
    """Which taints count: by key, or as KEY=VALUE."""

    include_prefer_no_schedule: bool = False
    excluded_taints: frozenset[str] = frozenset()
    included_taints: frozenset[str] = frozenset()


class InterPodAntiAffinityArgs(ChosenPods, frozen=True):
    """Nothing but which pods."""


class TopologySpreadArgs(ChosenPods, frozen=True):
    """Which kinds of constraints count."""

    constraints: tuple[str, ...] = ("DoNotSchedule",)
    topology_balance_node_fit: bool = True


class TooManyRestartsArgs(ChosenPods, frozen=True):
    """How many restarts are too many."""

    pod_restart_threshold: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    including_init_containers: bool = False
    states: frozenset[str] = frozenset()


class OwnerKinds(PolicyPart, frozen=True):
    """The only kinds of owners that count, or those that do not."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()


class ConditionFilter(PolicyPart, frozen=True):
    """A condition of the pod; fields that are not set count for nothing."""

    type: str = ""
    status: str = ""
    reason: str = ""
    min_time_since_last_transition_seconds: Count | None = None


class PodLifeTimeArgs(ChosenPods, frozen=True):
    """When a pod is too old; all that is set has to hold."""

    owner_kinds: OwnerKinds = OwnerKinds()
    max_pod_life_time_seconds: Count | None = None
    states: frozenset[str] = frozenset()
    conditions: tuple[ConditionFilter, ...] = ()
    exit_codes: frozenset[ExitCode] = frozenset()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False


class FailedPodsArgs(ChosenPods, frozen=True):
    """Which failed pods are taken away. Units: seconds."""

    exclude_owner_kinds: frozenset[str] = frozenset()
    min_pod_lifetime_seconds: Count = 3600
    reasons: frozenset[str] = frozenset()
    exit_codes: frozenset[ExitCode] = frozenset()
    including_init_containers: bool = False


class DuplicatesArgs(Args, frozen=True):
    """Whose pods may stand together."""

    namespaces: Namespaces = ALL_NAMESPACES
    exclude_owner_kinds: frozenset[str] = frozenset()


class EvictionLimits(PolicyPart, frozen=True):
    """How many pods the strategy takes from a node."""

    node: Count | None = None


class LowNodeUtilizationArgs(Args, frozen=True):
    """Below all `thresholds` a node is underutilised, above one of `targetThresholds` overutilised."""

    use_deviation_thresholds: bool = False
    thresholds: dict[str, Percent] = {}
    target_thresholds: dict[str, Percent] = {}
    number_of_nodes: Count = 0
    metrics_utilization: MetricsUtilization | None = None
    evictable_namespaces: Namespaces = ALL_NAMESPACES
    eviction_limits: EvictionLimits = EvictionLimits()


class HighNodeUtilizationArgs(Args, frozen=True):
    """Below all `thresholds` a node is underutilised."""

    thresholds: dict[str, Percent] = {}
    number_of_nodes: Count = 0
    eviction_modes: frozenset[str] = frozenset()
    evictable_namespaces: Namespaces = ALL_NAMESPACES


class ConsolidationArgs(Args, frozen=True):
    """Which pods may move for which that wait: Berth's own, the descheduler has no such strategy."""

    evictable_namespaces: Namespaces = ALL_NAMESPACES
    least_priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = -(2**31)
    """Of what waits, the priority from which on pods move for it."""
    max_moves: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20
    """How many pods move at most for one pod, or one group, that waits."""


class PriorityThreshold(PolicyPart, frozen=True):
    """Pods from this priority on stay; by value, or by the name of a class."""

    value: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    name: str = ""


class ProtectedStorageClass(PolicyPart, frozen=True):
    """A storage class whose pods stay."""

    name: str


class PodsWithPvc(PolicyPart, frozen=True):
    """The storage classes that count; all where none is named."""

    protected_storage_classes: tuple[ProtectedStorageClass, ...] = ()


class ProtectionsConfig(PolicyPart, frozen=True):
    """Arguments of protections."""

    pods_with_pvc: PodsWithPvc = msgspec.field(default=PodsWithPvc(), name="PodsWithPVC")


class PodProtections(PolicyPart, frozen=True):
    """Protections beside the usual ones, and usual ones that are off."""

    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: ProtectionsConfig = ProtectionsConfig()


class DefaultEvictorArgs(Args, frozen=True):
    """Which pods are never evicted."""

    node_selector: str = ""
    label_selector: PolicySelector | None = None
    namespace_label_selector: PolicySelector | None = None
    priority_threshold: PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: Count = 0
    min_pod_age: str = ""
    no_eviction_policy: str = ""
    pod_protections: PodProtections = PodProtections()
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False


class PluginConfig(PolicyPart, frozen=True):
    """A plugin's arguments, by its name; they are read once it is known whose they are."""

    name: str
    args: Any = None


class PluginSet(PolicyPart, frozen=True):
    """The plugins of an extension point."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


NO_PLUGINS: Final = PluginSet()


class Plugins(PolicyPart, frozen=True):
    """The plugins of a profile by extension point.

    Upstream's tags are `presort` and `preevictionfilter`, its README and tests write `preSort` and
    `preEvictionFilter`: both are read.
    """

    presort: PluginSet = NO_PLUGINS
    pre_sort: PluginSet = NO_PLUGINS
    sort: PluginSet = NO_PLUGINS
    deschedule: PluginSet = NO_PLUGINS
    balance: PluginSet = NO_PLUGINS
    filter: PluginSet = NO_PLUGINS
    preevictionfilter: PluginSet = NO_PLUGINS
    pre_eviction_filter: PluginSet = NO_PLUGINS


class WrittenProfile(PolicyPart, frozen=True):
    """A profile as it is written."""

    name: str = ""
    plugin_config: tuple[PluginConfig, ...] = ()
    plugins: Plugins = Plugins()


class WrittenPolicy(PolicyPart, frozen=True):
    """A policy as it is written."""

    api_version: str
    kind: str
    profiles: tuple[WrittenProfile, ...] = ()
    node_selector: str = ""
    max_no_of_pods_to_evict_per_node: Count | None = None
    max_no_of_pods_to_evict_per_namespace: Count | None = None
    max_no_of_pods_to_evict_total: Count | None = None
    eviction_failure_event_notification: bool = False
    metrics_collector: MetricsCollector = MetricsCollector()
    metrics_providers: tuple[MetricsProvider, ...] = ()
    grace_period_seconds: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None


DESCHEDULE: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {
        "RemovePodsViolatingNodeAffinity": NodeAffinityArgs,
        "RemovePodsViolatingNodeTaints": NodeTaintsArgs,
        "RemovePodsViolatingInterPodAntiAffinity": InterPodAntiAffinityArgs,
        "RemovePodsHavingTooManyRestarts": TooManyRestartsArgs,
        "PodLifeTime": PodLifeTimeArgs,
        "RemoveFailedPods": FailedPodsArgs,
    }
)
BALANCE: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {
        "RemoveDuplicates": DuplicatesArgs,
        "RemovePodsViolatingTopologySpreadConstraint": TopologySpreadArgs,
        "LowNodeUtilization": LowNodeUtilizationArgs,
        "HighNodeUtilization": HighNodeUtilizationArgs,
        "Consolidation": ConsolidationArgs,
    }
)
"""The strategies of each extension point, and their arguments."""


class Profile(msgspec.Struct, frozen=True):
    """Strategies in the order in which they run, and which pods they leave alone."""

    name: str
    evictor: DefaultEvictorArgs
    strategies: tuple[tuple[str, Args], ...]


class Policy(msgspec.Struct, frozen=True):
    """What is to be descheduled, and how much of it at most; None is no limit. Units: seconds."""

    profiles: tuple[Profile, ...]
    node_selector: str = ""
    max_per_node: int | None = None
    max_per_namespace: int | None = None
    most: int | None = None
    grace_period_seconds: int | None = None
    prometheus: PrometheusServer | None = None

    def measured_by(self) -> frozenset[MetricsUtilization]:
        """The metrics that strategies go by."""
        chosen = (args for profile in self.profiles for _, args in profile.strategies)
        low = (args for args in chosen if isinstance(args, LowNodeUtilizationArgs))
        return frozenset(args.metrics_utilization for args in low if args.metrics_utilization is not None)


def one_strategy(name: str) -> Policy:
    """The policy that runs that strategy alone, with its defaults."""
    args = {**DESCHEDULE, **BALANCE}[name]()
    return Policy((Profile("default", DefaultEvictorArgs(), ((name, args),)),))
