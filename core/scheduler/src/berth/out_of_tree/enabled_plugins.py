"""Enables, sets aside and disables plugins of a running profile.

A profile's plugin lists are replaced, never changed: a cycle that is under way keeps those it began with.
A plugin that is set aside keeps its place in the running order.
"""

from typing import Any

from msgspec.structs import fields, replace

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import ONE_IN_A_PROFILE, SidecarSpec
from berth.framework.runtime import Framework, ProfilePlugins
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.profiles.profile_builder import WEIGHTED

_POINTS = frozenset(each.name for each in fields(ProfilePlugins))
_AFTER_THE_CHOICE = frozenset({"reserve", "permit", "pre_bind", "bind", "post_bind", "by_name"})
_WEIGHTED = frozenset(point.attribute for point in WEIGHTED)


class EnabledPlugins:
    """A profile's plugins in running order, including those that are set aside."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._everyone = framework.plugins
        self._takes_part: dict[str, frozenset[str]] = {}
        """Where plugins take part, by name; those that are not here do so wherever they stand."""

    def enable(self, plugin: SidecarPlugin, spec: SidecarSpec, weight: int) -> None:
        """Enable the plugin at its extension points, after all others; at Bind before them.

        QueueSort, where a profile has one plugin, is set by its configuration alone.
        """
        changed: dict[str, Any] = {"by_name": {**self._everyone.by_name, plugin.name: plugin}}
        for point in spec.extension_points - ONE_IN_A_PROFILE:
            here: list[Any] = getattr(self._everyone, point.attribute)
            entry: Any = (plugin, weight) if point in WEIGHTED else plugin
            changed[point.attribute] = [entry, *here] if point is ExtensionPoint.BIND else [*here, entry]
        self._everyone = replace(self._everyone, **changed)
        self._show()

    def start_draining(self, plugin: SidecarPlugin) -> None:
        """Start no further attempt with the plugin; attempts that began with it end with it."""
        plugin.leaving = True
        self._takes_part[plugin.name] = self._takes_part.get(plugin.name, _POINTS) & _AFTER_THE_CHOICE
        self._show()

    def set_aside(self, plugin: SidecarPlugin) -> None:
        """Set the plugin aside: it is called at no extension point."""
        self._takes_part[plugin.name] = frozenset()
        self._show()

    def take_back(self, plugin: SidecarPlugin) -> None:
        """Call a plugin that was set aside again, at its place in the order."""
        plugin.leaving = False
        self._takes_part.pop(plugin.name, None)
        self._show()

    def disable(self, plugin: SidecarPlugin) -> None:
        """Remove the plugin from the profile."""
        self._everyone = _without(self._everyone, {plugin.name: frozenset()})
        self._takes_part.pop(plugin.name, None)
        self._show()

    def points_of(self, plugin: SidecarPlugin) -> frozenset[str]:
        """The lists of a PluginSet that have the plugin, set aside or not."""
        return frozenset(
            name
            for name in _POINTS - {"by_name"}
            if any(_name_of(name, entry) == plugin.name for entry in getattr(self._everyone, name))
        )

    def is_queue_sort(self, plugin: SidecarPlugin) -> bool:
        """Whether the plugin is the profile's QueueSort plugin, which can't be replaced."""
        return plugin in self._everyone.queue_sort

    def weight_of(self, plugin: SidecarPlugin) -> int:
        """The weight of the plugin's scores; 0 where it does not score."""
        return next((weight for known, weight in self._everyone.score if known is plugin), 0)

    def precedes_post_filter_end(self, plugin: SidecarPlugin, ended_by: str) -> bool:
        """Whether the plugin's PostFilter precedes the one that ended that phase."""
        names = [each.name for each in self._everyone.post_filter]
        return ended_by not in names[: names.index(plugin.name)]

    def _show(self) -> None:
        self._framework.take(_without(self._everyone, self._takes_part))


def _without(plugins: ProfilePlugins, takes_part: dict[str, frozenset[str]]) -> ProfilePlugins:
    """The plugins without those that are set aside."""
    changed: dict[str, Any] = {}
    for name in _POINTS:
        away = {plugin for plugin, points in takes_part.items() if name not in points}
        here = getattr(plugins, name)
        if name == "by_name":
            changed[name] = {known: plugin for known, plugin in here.items() if known not in away}
        else:
            changed[name] = [entry for entry in here if _name_of(name, entry) not in away]
    return replace(plugins, **changed)


def _name_of(point: str, entry: Any) -> str:
    plugin = entry[0] if point in _WEIGHTED else entry
    return str(plugin.name)
