"""The scheduler of a simulation as its files say, and what of its plugins can be simulated.

A list of plugins for a simulation has one field more than a scheduler's: `command` in place of `address`
(berth.config.out_of_tree.plugin_list).
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from berth.config.catalogue import IN_TREE, ExtensionPoint
from berth.config.flags.command_line import Settings, parse_flags, read_settings
from berth.config.loading import Loaded
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.simulation.errors import PluginsError

DEFAULT: Final = "default"
"""In place of a configuration file: kube-scheduler's own defaults."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins in other processes; the files are what errors name."""

    sidecars: tuple[SidecarSpec, ...] = ()
    list_file: str = "plugins"
    config_file: str = "configuration"

    def place(self, spec: SidecarSpec, field: str = "") -> str:
        """The entry of that plugin, or a field of it, as errors name it."""
        names = [each.name for each in self.sidecars]
        path = f"{self.list_file}: plugins[{names.index(spec.name)}]{field and f'.{field}'}"
        return f"{path}: plugin {spec.name}"

    def without_post_filter(self) -> "Plugins":
        """The same plugins, none of which makes room."""
        point = frozenset({ExtensionPoint.POST_FILTER})
        sidecars = tuple(replace(s, extension_points=s.extension_points - point) for s in self.sidecars)
        return replace(self, sidecars=sidecars)


NO_PLUGINS: Final = Plugins()


class SchedulerSettings(NamedTuple):
    """Which scheduler is simulated: its configuration, and its plugins in other processes."""

    loaded: Loaded
    plugins: Plugins = NO_PLUGINS


def read_scheduler(config_file: str, feature_gates: str, plugins_file: str = "") -> SchedulerSettings:
    """What `berth scheduler` would start with, but for plugins that no profile uses.

    Raises: ConfigError, PluginsError.
    """
    flags = [f"--config={config_file}"] if config_file else []
    flags += [f"--plugins={plugins_file}"] if plugins_file else []
    flags += [f"--feature-gates={feature_gates}"] if feature_gates else []
    settings = read_settings(parse_flags(flags), commands=True)
    list_file = plugins_file or config_file
    used = _used(settings)
    plugins = Plugins(used, list_file, config_file or DEFAULT)
    _check(settings, plugins)
    return SchedulerSettings(settings.loaded, plugins)


def files_of(name: str) -> tuple[str, str]:
    """The files of a configuration as `compare` takes it: CONFIG, or CONFIG,LIST with a list of plugins."""
    config, _, listed = name.partition(",")
    return "" if config == DEFAULT else config, listed


def check_all_there(loaded: Loaded, plugins: Plugins) -> None:
    """Refuse a profile with a plugin that is nowhere to be had. Raises: PluginsError."""
    known = IN_TREE.keys() | {spec.name for spec in plugins.sidecars}
    for profile in loaded.profiles:
        missing = sorted({name for named in profile.points.values() for name, _ in named} - known)
        if missing:
            where = f"{plugins.config_file}: profile {profile.scheduler_name}: plugin {missing[0]}"
            raise PluginsError(f"{where}: no list of plugins has it; give it an entry there, or disable it")


def check_in_process(loaded: Loaded, plugins: Plugins = NO_PLUGINS) -> None:
    """Refuse plugins and extenders in other processes, where none is asked. Raises: PluginsError."""
    if loaded.extenders:
        where = f"{plugins.config_file}: extenders: {loaded.extenders[0].url_prefix}"
        raise PluginsError(f"{where}: no HTTP extender is asked here; take extenders out")
    if plugins.sidecars:
        place = plugins.place(plugins.sidecars[0])
        raise PluginsError(f"{place}: no plugin in another process is asked here; take the entry out")
    check_all_there(loaded, plugins)


def _used(settings: Settings) -> tuple[SidecarSpec, ...]:
    """The plugins that a profile names or that name a profile."""
    named = {
        name
        for profile in settings.loaded.profiles
        for points in profile.points.values()
        for name, _ in points
    }
    return tuple(spec for spec in settings.sidecars if spec.profiles or spec.name in named)


def _check(settings: Settings, plugins: Plugins) -> None:
    """Refuse what a simulation would have to leave out. Raises: PluginsError."""
    profiles = [profile.scheduler_name for profile in settings.loaded.profiles]
    for spec in plugins.sidecars:
        if unknown := sorted(set(spec.profiles) - set(profiles)):
            said = f"there is no profile {unknown[0]}; there are {', '.join(profiles)}"
            raise PluginsError(f"{plugins.place(spec, 'profiles')}: {said}")
        if spec.shadow:
            said = "in shadow it has no say in what is simulated; take the entry or its `shadow` out"
            raise PluginsError(f"{plugins.place(spec, 'shadow')}: {said}")
    if settings.directory is not None and settings.directory.defaults.profiles:
        said = "a simulation has the plugins that have entries; give each an entry, and take this field out"
        raise PluginsError(f"{plugins.list_file}: directory.profiles: {said}")
    for index, extender in enumerate(settings.loaded.configuration.extenders):
        if extender.bind_verb:
            where = f"{plugins.config_file}: extenders[{index}].bindVerb: {extender.url_prefix}"
            raise PluginsError(f"{where}: it would bind in a real cluster; take the field out")
