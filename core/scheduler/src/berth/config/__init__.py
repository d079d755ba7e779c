"""Floor 2: KubeSchedulerConfiguration: types, decoding, defaults, validation, feature gates.

    text ─ document ─ decoding ─ defaults ─ (flags) ─ validation ─ extenders, profiles
                     └────────────────────── loading ──────────────────────┘

`load` goes the whole way; what it gives is what `profiles` (the package) wires and `cli` runs.
`command_line` reads kube-scheduler's flags, `sidecars` the list of out-of-tree plugins.
"""

from berth.config.catalogue import IN_TREE, ExtensionPoint
from berth.config.duration import Duration
from berth.config.errors import (
    BuildError,
    ConfigError,
    DecodeError,
    FeatureGateError,
    FlagError,
    PluginListError,
    ValidationError,
)
from berth.config.feature_gates import FeatureGates, parse_feature_gates
from berth.config.loading import LoadedConfig, load, parse
from berth.config.profiles import ResolvedProfile
from berth.config.types import SchedulerConfiguration

__all__ = [
    "IN_TREE",
    "BuildError",
    "ConfigError",
    "DecodeError",
    "Duration",
    "ExtensionPoint",
    "FeatureGateError",
    "FeatureGates",
    "FlagError",
    "LoadedConfig",
    "PluginListError",
    "ResolvedProfile",
    "SchedulerConfiguration",
    "ValidationError",
    "load",
    "parse",
    "parse_feature_gates",
]
