"""Which plugins run at which extension point, in which order, with which weight.

    written sets ─ merge with the defaults (A) ─ own lists (B) ─ multiPoint (C) ─ counts (D) ─ weights (E)

Step A is part of defaulting and cannot fail; B to E happen when a profile is built, and end at the
first problem.

Source: apis/config/v1/default_plugins.go, framework/runtime/framework.go (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from berth.config.catalogue import Catalogue, ExtensionPoint
from berth.config.errors import BuildError
from berth.config.go_text import quote
from berth.config.types import PluginEntry, Plugins, PluginSet

PluginWeight: TypeAlias = tuple[str, int]
ResolvedPoints: TypeAlias = Mapping[ExtensionPoint, tuple[PluginWeight, ...]]

ALL = "*"
_P = ExtensionPoint
# Points are checked in this order, so it decides which of several problems is reported.
CHECK_ORDER = (
    _P.PRE_FILTER,
    _P.FILTER,
    _P.POST_FILTER,
    _P.RESERVE,
    _P.PRE_SCORE,
    _P.SCORE,
    _P.PRE_BIND,
    _P.BIND,
    _P.POST_BIND,
    _P.PERMIT,
    _P.PRE_ENQUEUE,
    _P.QUEUE_SORT,
    _P.PLACEMENT_GENERATE,
    _P.PLACEMENT_SCORE,
)
_SCORING = {_P.SCORE: "score plugins", _P.PLACEMENT_SCORE: "placement score plugins"}


def merge_plugins(default: Plugins, written: Plugins) -> Plugins:
    """Merge written sets into the default ones, each point by itself."""
    names = default.__struct_fields__
    return Plugins(**{name: _merge_set(getattr(default, name), getattr(written, name)) for name in names})


def _merge_set(default: PluginSet, written: PluginSet) -> PluginSet:
    off = {plugin.name for plugin in written.disabled}
    last = {plugin.name: index for index, plugin in enumerate(written.enabled)}
    used: set[int] = set()
    enabled: list[PluginEntry] = []
    for plugin in () if ALL in off else default.enabled:
        if plugin.name in off:
            continue
        if plugin.name in last:
            # A plugin that is configured again keeps its place, and only its last entry counts as used.
            used.add(last[plugin.name])
            enabled.append(written.enabled[last[plugin.name]])
        else:
            enabled.append(plugin)
    enabled += [plugin for index, plugin in enumerate(written.enabled) if index not in used]
    disabled = tuple(PluginEntry(name=plugin.name) for plugin in written.disabled)
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def resolve_points(scheduler_name: str, plugins: Plugins, catalogue: Catalogue) -> ResolvedPoints:
    """Give each point's plugins in order, with effective weights at the scoring points and 0 at the others.

    Raises:
        BuildError: a plugin is unknown, misplaced or repeated, one is missing, or weights overflow.
    """
    own = {point: _own_list(point, plugins, catalogue) for point in CHECK_ORDER}
    lists = {point: _expanded(point, own[point], plugins, catalogue) for point in CHECK_ORDER}
    _check_known(plugins, catalogue)
    _check_counts(scheduler_name, lists)
    weights = {point: _weights(point, plugins, catalogue) for point in _SCORING}
    return {
        point: tuple((name, weights[point][name] if point in _SCORING else 0) for name in lists[point])
        for point in ExtensionPoint
    }


def plugin_set(plugins: Plugins, point: ExtensionPoint) -> PluginSet:
    """Give the set that is written at a point."""
    found: PluginSet = getattr(plugins, point.attribute)
    return found


def _own_list(point: ExtensionPoint, plugins: Plugins, catalogue: Catalogue) -> list[str]:
    names: list[str] = []
    for plugin in plugin_set(plugins, point).enabled:
        if plugin.name not in catalogue:
            raise _unknown(plugin.name, point)
        if point not in catalogue[plugin.name]:
            raise BuildError(f"plugin {quote(plugin.name)} does not extend {point.interface} plugin")
        if plugin.name in names:
            raise _repeated(plugin.name, point)
        names.append(plugin.name)
    return names


def _expanded(point: ExtensionPoint, own: Sequence[str], plugins: Plugins, catalogue: Catalogue) -> list[str]:
    """Put a point's own list and its share of multiPoint together."""
    off = {plugin.name for plugin in plugin_set(plugins, point).disabled}
    if ALL in off:
        return list(own)
    overridden: set[str] = set()
    taken: list[str] = []
    for plugin in plugins.multi_point.enabled:
        if plugin.name not in catalogue:
            raise _unknown(plugin.name, point)
        if point not in catalogue[plugin.name] or plugin.name in off:
            continue
        if plugin.name in own:
            overridden.add(plugin.name)
        elif plugin.name in taken:
            raise _repeated(plugin.name, point)
        else:
            taken.append(plugin.name)
    first = [name for name in own if name in overridden]
    return [*first, *taken, *(name for name in own if name not in overridden)]


def _check_known(plugins: Plugins, catalogue: Catalogue) -> None:
    """Refuse an unknown name under multiPoint even where every point has switched multiPoint off."""
    for plugin in plugins.multi_point.enabled:
        if plugin.name not in catalogue:
            raise _unknown(plugin.name, CHECK_ORDER[0])


def _check_counts(scheduler_name: str, lists: Mapping[ExtensionPoint, Sequence[str]]) -> None:
    profile = f"for profile with scheduler name {quote(scheduler_name)}"
    sorters = len(lists[_P.QUEUE_SORT])
    if sorters != 1:
        raise BuildError(f"only one queue sort plugin required {profile}, but got {sorters}")
    if not lists[_P.BIND]:
        raise BuildError(f"at least one bind plugin is needed {profile}")
    if len(lists[_P.PLACEMENT_GENERATE]) > 1:
        raise BuildError(f"at most one placement generate plugin is allowed {profile}")


def _weights(point: ExtensionPoint, plugins: Plugins, catalogue: Catalogue) -> Mapping[str, int]:
    """Give every plugin's weight at a scoring point: its first mention decides, disabled or not."""
    weights: dict[str, int] = {}
    mentions: Iterable[PluginEntry] = (*plugin_set(plugins, point).enabled, *plugins.multi_point.enabled)
    for plugin in mentions:
        if plugin.name in weights or point not in catalogue[plugin.name]:
            continue
        # The check for overflow wraps around, so a negative total is what it really catches.
        if sum(weights.values()) < 0:
            raise BuildError(f"{_SCORING[point]}: total score of Score plugins could overflow")
        weights[plugin.name] = plugin.weight or 1
    return weights


def _unknown(name: str, point: ExtensionPoint) -> BuildError:
    return BuildError(f"{point.interface} {quote(name)} does not exist")


def _repeated(name: str, point: ExtensionPoint) -> BuildError:
    return BuildError(f"plugin {quote(name)} already registered as {quote(point.interface)}")
