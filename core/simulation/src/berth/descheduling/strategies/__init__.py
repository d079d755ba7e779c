"""The descheduler's strategies: each says which pods stand badly, and whether they would stand better.

What fits is never decided here: the engine chooses the node, a strategy only looks at what it chose.

Source: pkg/framework/plugins (descheduler v0.36).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from berth.config.descheduling.policy import Args
from berth.descheduling.strategies.consolidation import Consolidation
from berth.descheduling.strategies.duplicates import Duplicates
from berth.descheduling.strategies.node_rules import NodeAffinityStrategy, NodeTaints
from berth.descheduling.strategies.pod_rules import AntiAffinity, TopologySpread
from berth.descheduling.strategies.pod_states import FailedPods, LifeTime, TooManyRestarts
from berth.descheduling.strategies.strategy import Strategy
from berth.descheduling.strategies.utilization import HighUtilization, LowUtilization

_KINDS: Final[Mapping[str, Callable[[Any], Strategy]]] = MappingProxyType(
    {
        "RemovePodsViolatingNodeAffinity": NodeAffinityStrategy,
        "RemovePodsViolatingNodeTaints": NodeTaints,
        "RemovePodsViolatingInterPodAntiAffinity": AntiAffinity,
        "RemovePodsHavingTooManyRestarts": TooManyRestarts,
        "PodLifeTime": LifeTime,
        "RemoveFailedPods": FailedPods,
        "RemoveDuplicates": Duplicates,
        "RemovePodsViolatingTopologySpreadConstraint": TopologySpread,
        "LowNodeUtilization": LowUtilization,
        "HighNodeUtilization": HighUtilization,
        "Consolidation": Consolidation,
    }
)
READS_CONTAINERS: Final = frozenset({"RemovePodsHavingTooManyRestarts", "PodLifeTime", "RemoveFailedPods"})
"""Strategies that may read the statuses of containers."""


def strategy_of(name: str, args: Args) -> Strategy:
    """The strategy of that name with these arguments."""
    return _KINDS[name](args)
