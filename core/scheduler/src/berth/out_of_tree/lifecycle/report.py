"""Reports of a plugin's state: for `berth plugin list` and `describe`, and for metrics.

Source: docs/protocol.md.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from berth.config.catalogue import ExtensionPoint
from berth.out_of_tree.connections.breaker import Circuit
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.connections.last_failures import Failure
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.versions import PluginVersion
from berth_plugin_proto import identity_pb2

_PREFIX = "EXTENSION_POINT_"


class PluginState(StrEnum):
    """The state of a version of a plugin; docs/protocol.md "States" defines each."""

    DRAINING = "draining"
    HUNG = "hung"
    WAITING = "waiting"
    GREETING = "greeting"
    SYNCING = "syncing"
    FAILING = "failing"
    SLOW = "slow"
    READY = "ready"


def state_of(connection: PluginConnection, *, draining: bool) -> PluginState:
    """The version's state: the first of the enum that applies."""
    if draining:
        return PluginState.DRAINING
    if connection.hung:
        return PluginState.HUNG
    if not connection.ready:
        return PluginState(connection.phase.value)
    if connection.breaker.circuit is not Circuit.CLOSED:
        return PluginState.FAILING
    return PluginState.SLOW if connection.slow else PluginState.READY


def leaves(plugins: Collection[SidecarPlugin]) -> bool:
    """Whether the plugin is being removed from all its profiles."""
    return bool(plugins) and all(plugin.leaving for plugin in plugins)


def summary(version: PluginVersion, *, leaves: bool = False) -> dict[str, Any]:
    """A version of a plugin in one line; `leaves` says whether the plugin is being removed."""
    connection = version.connection
    return {
        "name": connection.spec.name,
        "version": connection.version,
        "address": connection.spec.address,
        "state": state_of(connection, draining=leaves or version.draining).value,
        "phase": connection.phase.value,
        "circuit": connection.breaker.circuit.value,
        "profiles": sorted(connection.arguments),
        "shadow": connection.spec.shadow,
        "error": connection.last_error or (connection.last_failure if connection.breaker.pause_left else ""),
    }


def description(
    version: PluginVersion, draining: Iterable[PluginVersion], plugins: Iterable[SidecarPlugin]
) -> dict[str, Any]:
    """All details of a plugin."""
    connection, using = version.connection, list(plugins)
    spec, wants = connection.spec, connection.capabilities
    return {
        **summary(version, leaves=leaves(using)),
        "conditions": [_condition(each) for each in connection.conditions],
        "extensionPoints": sorted(_point(point) for point in wants.extension_points),
        "events": [_interest(each) for each in wants.events],
        "failurePolicy": {
            point.value: str(spec.policy_at(point)) for point in _in_order(spec.failure_policy)
        },
        "lastFailures": [_failure(each) for each in connection.failures],
        "arguments": dict(connection.arguments),
        "clusterState": {
            "generation": version.feed.generation,
            "acknowledged": connection.acknowledged,
            "starts": connection.starts,
            "nodes": wants.state.nodes,
            "pods": wants.state.pods,
            "resources": [f"{each.resource}.{each.version}.{each.group}" for each in wants.state.resources],
        },
        "recording": connection.recording is not None,
        "attempts": sum(plugin.serves(connection) for plugin in using),
        "draining": [
            {
                "version": old.connection.version,
                "address": old.connection.spec.address,
                "recording": old.connection.recording is not None,
                "attempts": sum(plugin.serves(old.connection) for plugin in using),
            }
            for old in draining
        ],
    }


def _in_order(points: Iterable[ExtensionPoint]) -> list[ExtensionPoint]:
    wanted = set(points)
    return [point for point in ExtensionPoint if point in wanted]


def _condition(condition: Any) -> dict[str, Any]:
    return {
        "type": condition.kind.value,
        "status": "True" if condition.holds else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": _rfc3339(condition.since),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "point": failure.point,
        "pod": failure.pod,
        "error": failure.text,
        "policy": failure.policy.value,
        "count": failure.count,
        "lastTime": _rfc3339(failure.last),
    }


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _point(number: int) -> str:
    if number not in identity_pb2.ExtensionPoint.values():
        return f"#{number}"
    name = identity_pb2.ExtensionPoint.Name(number)  # type: ignore[arg-type]  # it is a known one
    return "".join(part.capitalize() for part in name.removeprefix(_PREFIX).split("_"))


def _interest(interest: identity_pb2.EventInterest) -> str:
    known = identity_pb2.ActionType.values()
    actions = [
        identity_pb2.ActionType.Name(action).removeprefix("ACTION_TYPE_") if action in known else f"#{action}"
        for action in interest.actions
    ]
    return f"{interest.resource}: {', '.join(actions)}{' (asks)' if interest.ask_hint else ''}"
