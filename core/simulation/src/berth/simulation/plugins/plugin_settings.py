"""The configuration of the simulated scheduler, and which of its plugins can be simulated.

    KubeSchedulerConfiguration, PluginList ---------------------+
    Scheduler, SchedulerPlugins --rendered (scheduler_objects)--+--> settings --(plugin_addresses)--> checked

A list of plugins for a simulation has one field more than a scheduler's: `command` in place of `address`
(berth.config.out_of_tree.plugin_list).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from berth.config.catalogue import IN_TREE, ExtensionPoint
from berth.config.command_line import StartSettings, parse_flags, read_settings
from berth.config.loading import LoadedConfig
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.config.reading.own_documents import API_GROUP
from berth.simulation.errors import PluginsError
from berth.simulation.plugins.plugin_addresses import check_used, reached, read_list, read_ways

if TYPE_CHECKING:
    from berth.simulation.plugins.scheduler_objects import RenderedScheduler

REACHED_BY: Final = frozenset({"address", "command"})
_SCHEDULER: Final = re.compile(rb"""["']?kind["']?[ \t]*:[ \t]*["']?Scheduler["']?[ \t]*(?:[,}#\r\n]|$)""")
DEFAULT: Final = "default"
"""In place of a configuration file: kube-scheduler's own defaults."""


class SimulatedSidecars(msgspec.Struct, frozen=True):
    """The sidecars; the files are what errors name."""

    sidecars: tuple[SidecarSpec, ...] = ()
    list_file: str = "plugins"
    config_file: str = "configuration"
    objects: bool = False
    """Whether SchedulerPlugins describe them, and not the entries of a list."""
    given: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Where it is said how some of them are reached, if not where they are described."""
    unreached: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Those that run in a cluster alone, with the field that says where."""
    added: frozenset[str] = frozenset()
    """Those that no list and no SchedulerPlugin has: the option is all that there is of them."""

    def place(self, spec: SidecarSpec, field: str = "") -> str:
        """The entry of that plugin, or a field of it, as errors name it."""
        if spec.name in self.added or (field in REACHED_BY and spec.name in self.given):
            return self.given[spec.name]
        if self.objects:
            return f"{self.list_file}: SchedulerPlugin {spec.name}{field and f': spec.{field}'}"
        names = [each.name for each in self.sidecars]
        path = f"{self.list_file}: plugins[{names.index(spec.name)}]{field and f'.{field}'}"
        return f"{path}: plugin {spec.name}"

    def without_post_filter(self) -> "SimulatedSidecars":
        """The same plugins without PostFilter."""
        point = frozenset({ExtensionPoint.POST_FILTER})
        sidecars = tuple(replace(s, extension_points=s.extension_points - point) for s in self.sidecars)
        return msgspec.structs.replace(self, sidecars=sidecars)


NO_PLUGINS: Final = SimulatedSidecars()


class SchedulerSettings(NamedTuple):
    """Which scheduler is simulated: its configuration, and its sidecars."""

    loaded: LoadedConfig
    plugins: SimulatedSidecars = NO_PLUGINS


def read_scheduler(
    config_file: str,
    feature_gates: str,
    plugins_file: str = "",
    *,
    ways: Sequence[str] = (),
    objects: "RenderedScheduler | None" = None,
    shared: bool = False,
    release: str = "",
) -> SchedulerSettings:
    """The settings that `berth scheduler` would start with, without plugins that no profile uses.

    `ways` are the values of --plugin; one that neither list nor objects have is added. `objects` are those
    of the input, in place of a file. Where list and ways are `shared` with other configurations, they may be
    of plugins that this one does not use.

    Raises: ConfigError, PluginsError, InputError.
    """
    found = _objects_in(config_file) if config_file else objects
    given = read_ways(ways)
    places = _options(given)
    runs: Mapping[str, str] = {}
    if found is None:
        settings = _of_files(config_file, feature_gates, plugins_file, release, given.values())
        where = plugins_file or config_file
    else:
        settings, where, runs = (
            _of_objects(found, feature_gates, release, given.values()),
            found.where,
            found.runs,
        )
        listed = read_list(plugins_file) if plugins_file else {}
        given, places = listed | given, {name: f"{plugins_file}: plugin {name}" for name in listed} | places
    used = _used(settings)
    sidecars = reached(used, given)
    if not shared:
        check_used(sidecars, places, where)
    plugins = SimulatedSidecars(
        sidecars,
        where,
        config_file or DEFAULT if found is None else found.where,
        objects=found is not None,
        given=places,
        unreached={name: place for name, place in runs.items() if name not in given},
        added=frozenset(spec.name for spec in used if given.get(spec.name) is spec),
    )
    _check(settings, plugins)
    return SchedulerSettings(settings.loaded, plugins)


def _objects_in(config_file: str) -> "RenderedScheduler | None":
    """The Scheduler of a file, None where it has none or can't be read. Raises: InputError."""
    try:
        data = Path(config_file).read_bytes()
    except OSError:
        return None
    if not _SCHEDULER.search(data):
        return None
    # The operator is in another distribution.
    from berth.simulation.plugins.scheduler_objects import read_scheduler_objects  # noqa: PLC0415 (see above)

    return read_scheduler_objects(data, config_file)


def scheduler_among(documents: Iterable[dict[str, Any]], names: str) -> "RenderedScheduler | None":
    """The Scheduler among an input's further objects, None where there is none. Raises: InputError."""
    ours = [each for each in documents if each["apiVersion"].startswith(f"{API_GROUP}/")]
    if not any(each["kind"] == "Scheduler" for each in ours):
        return None
    from berth.simulation.plugins.scheduler_objects import rendered  # noqa: PLC0415 (another distribution)

    return rendered(ours, names)


def _of_files(
    config_file: str, feature_gates: str, plugins_file: str, release: str, further: Iterable[SidecarSpec]
) -> StartSettings:
    flags = [f"--config={config_file}"] if config_file else []
    flags += [f"--plugins={plugins_file}"] if plugins_file else []
    flags += [f"--feature-gates={feature_gates}"] if feature_gates else []
    flags += [f"--release={release}"] if release else []
    return read_settings(parse_flags(flags), commands=True, further=further)


def _of_objects(
    found: "RenderedScheduler", feature_gates: str, release: str, further: Iterable[SidecarSpec]
) -> StartSettings:
    """The settings that the Scheduler's pod would start with, with further feature gates."""
    texts = {f"{found.where}: configuration": found.configuration, f"{found.where}: plugins": found.plugins}
    config, plugins = texts
    gates = ",".join(filter(None, (found.feature_gates, feature_gates)))
    flags = [f"--config={config}", f"--plugins={plugins}", f"--feature-gates={gates}"]
    flags += [f"--release={release}"] if release else []

    def read(path: str) -> bytes:
        if path not in texts:
            raise FileNotFoundError(2, "no such file in the scheduler's pod; put the data itself here", path)
        return texts[path]

    return read_settings(parse_flags(flags), read, further=further)


def files_of(name: str, plugins_file: str = "") -> tuple[str, str]:
    """Configuration and list of plugins, as `compare` takes them: CONFIG, or CONFIG,LIST.

    `plugins_file` is the list of those that name none.
    """
    config, _, listed = name.partition(",")
    return "" if config == DEFAULT else config, listed or plugins_file


def check_ways_used(ways: Sequence[str], schedulers: Mapping[str, SchedulerSettings]) -> None:
    """Refuse a value of --plugin that none of the configurations, by name, uses. Raises: PluginsError."""
    sidecars = [spec for settings in schedulers.values() for spec in settings.plugins.sidecars]
    check_used(sidecars, _options(read_ways(ways)), ", ".join(schedulers))


def _options(names: Iterable[str]) -> dict[str, str]:
    """The option that says how these plugins are reached."""
    return {name: f"--plugin {name}" for name in names}


def check_all_there(loaded: LoadedConfig, plugins: SimulatedSidecars) -> None:
    """Refuse a profile with a plugin that is not defined. Raises: PluginsError."""
    for spec in plugins.sidecars:
        if spec.name in plugins.unreached:
            said = f"give --plugin {spec.name}=COMMAND or an address, or a list of plugins with an entry"
            raise PluginsError(f"{plugins.place(spec)}: {plugins.unreached[spec.name]}: {said}")
    known = IN_TREE.keys() | {spec.name for spec in plugins.sidecars}
    for profile in loaded.profiles:
        missing = sorted({name for named in profile.points.values() for name, _ in named} - known)
        if missing:
            where = f"{plugins.config_file}: profile {profile.scheduler_name}: plugin {missing[0]}"
            raise PluginsError(f"{where}: no list of plugins has it; give it an entry there, or disable it")


def check_in_process(loaded: LoadedConfig, plugins: SimulatedSidecars = NO_PLUGINS) -> None:
    """Refuse sidecars and extenders where they are not called. Raises: PluginsError."""
    if loaded.extenders:
        where = f"{plugins.config_file}: extenders: {loaded.extenders[0].url_prefix}"
        raise PluginsError(f"{where}: no HTTP extender is asked here; take extenders out")
    if plugins.sidecars:
        spec = plugins.sidecars[0]
        remedy = f"give a --config that names {spec.name} neither in a profile nor in a list of plugins"
        raise PluginsError(
            f"{plugins.place(spec)}: no sidecar is asked here: what it decides would be missing; {remedy}"
        )
    check_all_there(loaded, plugins)


def _used(settings: StartSettings) -> tuple[SidecarSpec, ...]:
    """The plugins that a profile enables or that name a profile."""
    named = {
        name
        for profile in settings.loaded.profiles
        for points in profile.points.values()
        for name, _ in points
    }
    return tuple(spec for spec in settings.sidecars if spec.profiles or spec.name in named)


def _check(settings: StartSettings, plugins: SimulatedSidecars) -> None:
    """Refuse plugins that can't be simulated. Raises: PluginsError."""
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
