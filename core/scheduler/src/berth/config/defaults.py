"""Stage 2: the fields that a file sets to a complete configuration.

What is unset gets the structs' own defaults; here is what depends on more than that: values that
count as unset, feature gates, the merge with the default plugins, and generated arguments.

Source: pkg/scheduler/apis/config/v1/defaults.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from berth.config.catalogue import default_plugins
from berth.config.duration import Duration
from berth.config.feature_gates import FeatureGates
from berth.config.plugin_args import ARGS_TYPES, CPU_AND_MEMORY, UtilizationShapePoint
from berth.config.plugin_sets import merge_plugins
from berth.config.reading.decoding import WrittenArgs
from berth.config.reading.wire_decoder import Fields, build
from berth.config.types import (
    DEFAULT_SCHEDULER_NAME,
    PluginConfig,
    Plugins,
    Profile,
    SchedulerConfiguration,
)

_STORAGE_SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100))
_FILTER_TIMEOUT = Duration.of_seconds(10)
_BINDING_TIMEOUT = Duration.of_seconds(600)


def complete(fields: Fields, gates: FeatureGates) -> SchedulerConfiguration:
    """Give the configuration that these fields stand for."""
    whole = dict(fields)
    _drop_empty(whole.get("leader_election"))
    _drop_empty(whole.get("client_connection"), "qps", "burst", "content_type")
    whole.setdefault("enable_contention_profiling", whole.get("enable_profiling", True))
    profiles = [dict(profile) for profile in fields.get("profiles") or [{}]]
    if len(profiles) == 1:
        profiles[0].setdefault("scheduler_name", DEFAULT_SCHEDULER_NAME)
    whole["profiles"] = tuple(_profile(profile, gates) for profile in profiles)
    configuration: SchedulerConfiguration = build(SchedulerConfiguration, whole)
    return configuration


def _drop_empty(section: Fields | None, *names: str) -> None:
    """Take zeros and empty texts for unset, in these fields or in all but the switches."""
    for name, value in list((section or {}).items()):
        if (name in names or not names) and not isinstance(value, bool) and not value:
            assert section is not None
            del section[name]


def _profile(fields: Fields, gates: FeatureGates) -> Profile:
    written = fields.get("plugins")
    plugins = default_plugins(gates)
    if written is not None:
        plugins = merge_plugins(plugins, build(Plugins, written))
    entries = tuple(_plugin_config(entry, gates) for entry in fields.get("plugin_config", ()))
    entries += _generated_args(plugins, {entry.name for entry in entries}, gates)
    profile: Profile = build(Profile, {**fields, "plugins": plugins, "plugin_config": entries})
    return profile


def _plugin_config(fields: Fields, gates: FeatureGates) -> PluginConfig:
    args = fields.get("args")
    if isinstance(args, WrittenArgs):
        args = complete_args(args.plugin, args.fields, gates)
    entry: PluginConfig = build(PluginConfig, {**fields, "args": args})
    return entry


def _generated_args(plugins: Plugins, written: set[str], gates: FeatureGates) -> tuple[PluginConfig, ...]:
    """Give default arguments of every enabled plugin that takes some and has none, by name."""
    return tuple(
        PluginConfig(name=name, args=complete_args(name, {}, gates))
        for name in sorted(enabled_names(plugins))
        if name in ARGS_TYPES and name not in written
    )


def enabled_names(plugins: Plugins) -> set[str]:
    """Give every name in any of the enabled lists."""
    sets = (getattr(plugins, name) for name in plugins.__struct_fields__)
    return {plugin.name for plugin_set in sets for plugin in plugin_set.enabled}


def complete_args(plugin: str, fields: Fields, gates: FeatureGates) -> Any:
    """Give a plugin's arguments with defaults filled in."""
    whole = dict(fields)
    if plugin in _ARGS_DEFAULTS:
        _ARGS_DEFAULTS[plugin](whole, gates)
    return build(ARGS_TYPES[plugin], whole)


def _default_fit(fields: Fields, _gates: FeatureGates) -> None:
    if "scoring_strategy" in fields:
        fields["scoring_strategy"] = dict(fields["scoring_strategy"])
        _default_resources(fields["scoring_strategy"], _gates)


def _default_resources(fields: Fields, _gates: FeatureGates) -> None:
    fields["resources"] = [
        {name: value for name, value in resource.items() if name != "weight" or value}
        for resource in fields.get("resources", ())
    ] or list(CPU_AND_MEMORY)


def _default_spread(fields: Fields, _gates: FeatureGates) -> None:
    fields["defaulting_type"] = fields.get("defaulting_type") or "System"


def _default_volume_binding(fields: Fields, gates: FeatureGates) -> None:
    if not fields.get("shape") and gates.enabled("StorageCapacityScoring"):
        fields["shape"] = _STORAGE_SHAPE


def _default_dynamic_resources(fields: Fields, gates: FeatureGates) -> None:
    if gates.enabled("DRASchedulerFilterTimeout"):
        fields.setdefault("filter_timeout", _FILTER_TIMEOUT)
    if gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus"):
        fields.setdefault("binding_timeout", _BINDING_TIMEOUT)


_ARGS_DEFAULTS: Mapping[str, Callable[[Fields, FeatureGates], None]] = MappingProxyType(
    {
        "NodeResourcesFit": _default_fit,
        "NodeResourcesBalancedAllocation": _default_resources,
        "PodTopologySpread": _default_spread,
        "VolumeBinding": _default_volume_binding,
        "DynamicResources": _default_dynamic_resources,
    }
)
