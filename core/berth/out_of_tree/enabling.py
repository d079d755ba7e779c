"""Putting a plugin into a profile that is at work, and taking it out.

A profile's lists are replaced, never changed: a cycle that is under way goes on with those it began with.
"""

from dataclasses import fields, replace
from typing import Any

from berth.config.catalogue import ExtensionPoint
from berth.config.sidecars import SidecarSpec
from berth.framework.runtime import Framework, PluginSet
from berth.out_of_tree.sidecar_plugin import SidecarPlugin

_AFTER_THE_CHOICE = frozenset({"reserve", "permit", "pre_bind", "bind", "post_bind"})


def enable(framework: Framework, plugin: SidecarPlugin, spec: SidecarSpec, weight: int) -> None:
    """Let the plugin take part in the profile at its points, behind all others; as a binder before them."""
    plugins = framework.plugins
    changed: dict[str, Any] = {"by_name": {**plugins.by_name, plugin.name: plugin}}
    for point in spec.extension_points:
        here: list[Any] = getattr(plugins, point.attribute)
        entry: Any = (plugin, weight) if point is ExtensionPoint.SCORE else plugin
        changed[point.attribute] = [entry, *here] if point is ExtensionPoint.BIND else [*here, entry]
    framework.take(replace(plugins, **changed))


def begin_to_leave(framework: Framework, plugin: SidecarPlugin) -> None:
    """Let no attempt begin with the plugin any more; those that did still end with it."""
    plugin.leaving = True
    _without(framework, plugin, keep=_AFTER_THE_CHOICE | {"by_name"})


def disable(framework: Framework, plugin: SidecarPlugin) -> None:
    """Take the plugin out of the profile altogether."""
    _without(framework, plugin, keep=frozenset())


def _without(framework: Framework, plugin: SidecarPlugin, *, keep: frozenset[str]) -> None:
    plugins = framework.plugins
    changed: dict[str, Any] = {}
    for each in fields(PluginSet):
        if each.name in keep:
            continue
        here = getattr(plugins, each.name)
        if each.name == "by_name":
            changed[each.name] = {name: known for name, known in here.items() if known is not plugin}
        elif each.name == "score":
            changed[each.name] = [(known, weight) for known, weight in here if known is not plugin]
        else:
            changed[each.name] = [known for known in here if known is not plugin]
    framework.take(replace(plugins, **changed))
