"""From a resolved configuration to one Framework for each profile.

Source: pkg/scheduler/framework/runtime/framework.go NewFramework; profile/profile.go NewMap (Kubernetes
v1.36).
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from berth.config.catalogue import ExtensionPoint
from berth.config.errors import BuildError
from berth.config.profiles import ResolvedProfile
from berth.framework.extender import Extender
from berth.framework.handle import Handle
from berth.framework.interface import Plugin
from berth.framework.runtime import Framework, ProfilePlugins

log = logging.getLogger(__name__)

PluginFactory = Callable[[Any, Handle], Plugin]

WEIGHTED = frozenset({ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE})


def build_frameworks(
    profiles: Iterable[ResolvedProfile],
    registry: Mapping[str, PluginFactory],
    handle_for: Callable[[str], Handle],
    extenders: Sequence[Extender] = (),
) -> dict[str, Framework]:
    """A Framework for each profile, by scheduler name, in the order of the configuration.

    Extenders serve all of them.

    Raises: BuildError naming profile and plugin where a plugin refuses its arguments.
    """
    frameworks: dict[str, Framework] = {}
    for profile in profiles:
        name = profile.scheduler_name
        plugins = wire(profile, construct(profile, registry, handle_for(name)))
        frameworks[name] = Framework(
            name,
            plugins,
            percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
            extenders=extenders,
        )
    return frameworks


def construct(
    profile: ResolvedProfile, registry: Mapping[str, PluginFactory], handle: Handle
) -> dict[str, Plugin]:
    """Every plugin that some point names, made once, with its arguments.

    Raises: BuildError where a plugin refuses its arguments.
    """
    built: dict[str, Plugin] = {}
    for name in dict.fromkeys(name for plugins in profile.points.values() for name, _ in plugins):
        factory = registry.get(name)
        if factory is None:
            log.warning("plugin has no implementation and does nothing plugin=%s", name)
            continue
        try:
            built[name] = factory(profile.args.get(name), handle)
        except (ValueError, TypeError) as error:
            raise BuildError(
                f"creating profile for scheduler name {profile.scheduler_name}: "
                f'initializing plugin "{name}": {error}'
            ) from error
    return built


def wire(profile: ResolvedProfile, built: Mapping[str, Plugin]) -> ProfilePlugins:
    """The plugins, each at its points."""
    plugins = ProfilePlugins(by_name=dict(built))
    for point, named in profile.points.items():
        here = [(built[name], weight) for name, weight in named if name in built]
        value: list[Any] = list(here) if point in WEIGHTED else [plugin for plugin, _ in here]
        setattr(plugins, point.attribute, value)
    return plugins
