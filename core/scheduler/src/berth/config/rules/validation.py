"""Stage 4: the rules for a complete configuration. All violations are collected, in upstream's order.

Source: pkg/scheduler/apis/config/validation/validation.go (Kubernetes v1.36).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from berth.config.catalogue import REMOVED, ExtensionPoint
from berth.config.errors import ValidationError
from berth.config.feature_gates import FeatureGates
from berth.config.go_text import json_text, quote
from berth.config.plugin_sets import plugin_set
from berth.config.rules.args_validation import args_errors, name_errors
from berth.config.rules.field_errors import EnumText, duplicate, invalid, required
from berth.config.rules.names import is_extended_resource, qualified_name_problems
from berth.config.types import (
    API_VERSION,
    ExtenderConfig,
    LeaderElection,
    PluginConfig,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)

_PERCENT = 100
_FIT_ARGS = "NodeResourcesFitArgs"
_REMOVED_TEXT = (
    f"was invalid in version {quote('v1')} (KubeSchedulerConfiguration is version {quote(API_VERSION)})"
)
# Upstream looks for removed plugins at these points only.
_CHECKED_POINTS = [point for point in ExtensionPoint if not point.value.startswith("placement")]


def validate(configuration: SchedulerConfiguration, gates: FeatureGates) -> None:
    """Check a whole configuration.

    Raises:
        ValidationError: with every violation.
    """
    problems = list(_problems(configuration, gates))
    if problems:
        raise ValidationError(*problems)


def _problems(whole: SchedulerConfiguration, gates: FeatureGates) -> Iterator[str]:
    if whole.client_connection.burst < 0:
        yield invalid("clientConnection.burst", whole.client_connection.burst, "must be non-negative")
    if whole.leader_election.leader_elect:
        yield from _election(whole.leader_election, "leaderElection")
    if whole.parallelism <= 0:
        yield invalid("parallelism", whole.parallelism, "should be an integer value greater than zero")
    yield from _profiles(whole.profiles, gates)
    yield from _percentage("percentageOfNodesToScore", whole.percentage_of_nodes_to_score)
    yield from _backoff(whole.pod_initial_backoff_seconds, whole.pod_max_backoff_seconds)
    yield from _extenders(whole.extenders)


def _election(election: LeaderElection, path: str) -> Iterator[str]:
    spans = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, span in spans.items():
        if span <= 0:
            yield invalid(f"{path}.{name}", span, "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        # The path is the one field's and the value the other's, as upstream prints it.
        yield invalid(
            f"{path}.leaseDuration", election.renew_deadline, "must be greater than `RenewDeadline`"
        )
    texts = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    for name, text in texts.items():
        if not text:
            yield required(f"{path}.{name}")
    if election.resource_lock != "leases":
        rule = 'resourceLock value must be "leases"'
        yield invalid(f"{path}.resourceLock", election.resource_lock, rule)


def _percentage(path: str, value: int | None) -> Iterator[str]:
    if value is not None and not 0 <= value <= _PERCENT:
        yield invalid(path, value, "not in valid range [0-100]")


def _backoff(initial: int, longest: int) -> Iterator[str]:
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", longest, rule)


def _profiles(profiles: Sequence[Profile], gates: FeatureGates) -> Iterator[str]:
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        if not profile.scheduler_name:
            yield required(f"{path}.schedulerName")
        yield from _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
        for point in _CHECKED_POINTS:
            yield from _removed_plugins(plugin_set(profile.plugins, point), f"{path}.plugins.{point}")
        yield from _plugin_config(profile.plugin_config, f"{path}.pluginConfig", gates)
        if profile.scheduler_name in names:
            yield duplicate(f"{path}.schedulerName", {})
        names.add(profile.scheduler_name)
    yield from _common_queue_sort(profiles)


def _removed_plugins(written: PluginSet, path: str) -> Iterator[str]:
    for index, plugin in enumerate(written.enabled):
        if plugin.name in REMOVED:
            yield invalid(f"{path}.enabled[{index}]", plugin.name, _REMOVED_TEXT)


def _plugin_config(entries: Sequence[PluginConfig], path: str, gates: FeatureGates) -> Iterator[str]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        place = f"{path}[{index}]"
        if entry.name in seen:
            yield duplicate(place, entry.name)
        seen.add(entry.name)
        if entry.name in REMOVED:
            yield invalid(place, entry.name, _REMOVED_TEXT)
        elif entry.name == _FIT_ARGS:
            yield invalid(f"{place}.args", entry.args, "has to match plugin args")
        else:
            yield from args_errors(entry.name, entry.args, f"{place}.args", gates)


def _common_queue_sort(profiles: Sequence[Profile]) -> Iterator[str]:
    """Compare the sets as written, not what they amount to: see `profiles.check_same_sort` for that."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        yield invalid(path, len(first.enabled), "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else ""
    args = [entry.args for entry in profiles[0].plugin_config if name and entry.name == name]
    for index, profile in enumerate(profiles[1:], start=1):
        path = f"profiles[{index}]"
        if _sort_set(profile.plugins.queue_sort) != _sort_set(first):
            shown = _sort_set(profile.plugins.queue_sort)
            yield invalid(f"{path}.plugins.queueSort", shown, "must be the same for all profiles")
        for entry in profile.plugin_config:
            if entry.name == name and not same_args(entry.args, args[-1] if args else None):
                shown = msgspec.to_builtins(entry.args)
                yield invalid(
                    f"{path}.pluginConfig.args", shown, "queueSort must be the same for all profiles"
                )


def _sort_set(written: PluginSet) -> dict[str, Any]:
    """Give a set in the form in which upstream prints it."""
    return {
        name: [{"Name": plugin.name, "Weight": plugin.weight or 0} for plugin in plugins] or None
        for name, plugins in (("Enabled", written.enabled), ("Disabled", written.disabled))
    }


def same_args(one: Any, other: Any) -> bool:
    """Answer whether two plugins' arguments are equal; raw JSON is compared as text."""
    if isinstance(one, msgspec.Struct) or isinstance(other, msgspec.Struct):
        return bool(one == other)
    return json_text(one) == json_text(other)


def _extenders(extenders: Sequence[ExtenderConfig]) -> Iterator[str]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for position, resource in enumerate(extender.managed_resources):
            place = f"{path}.managedResources[{position}].name"
            yield from _resource_name(resource.name, place)
            if resource.name in managed:
                yield invalid(place, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield invalid("extenders", found, "only one extender can implement bind")


def _resource_name(name: str, path: str) -> Iterator[str]:
    if qualified_name_problems(name):
        yield from name_errors(path, EnumText(name))
    elif not is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")
