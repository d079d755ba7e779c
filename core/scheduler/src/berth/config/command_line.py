"""A scheduler's command line: kube-scheduler's flags, what they mean beside a file, and the usage text.

    flags ─ parse_flags ─ Options ─ read_settings ─ Settings

With a file the leader-election flags that were given win over it and all other settings of the file
stand; without one the deprecated flags count too, and the result is not validated again.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from berth.config.catalogue import Catalogue
from berth.config.duration import Duration
from berth.config.errors import FeatureGateError, FlagError
from berth.config.extenders import ReadFile, read_file
from berth.config.feature_gates import FeatureGates, is_known, parse_feature_gates, parse_versions
from berth.config.flags.flag_parsing import ParsedFlags, parse_arguments
from berth.config.flags.flag_table import FLAGS, Effect, Flag, FlagKind, by_name
from berth.config.go_text import quote
from berth.config.loading import LoadedConfig, build, load, parse
from berth.config.out_of_tree.plugin_list import PluginList, list_beside, read_plugin_list
from berth.config.out_of_tree.sidecars import SidecarSpec, SocketDirectory, catalogue_of
from berth.config.releases.gate_history import NOT_COVERED
from berth.config.releases.release import RELEASES, Release, named, shown
from berth.config.rules.validation import validate
from berth.config.shards import Shard, check_shards, shards_beside
from berth.config.types import SchedulerConfiguration

PROGRAM = "berth scheduler"
_MAX_PORT = 65535
_LEAST_RECORDING_MIB = 2
_MAX_RECORDING_MIB = 1 << 20
_ELECTION_PREFIX = "leader-elect-"
_CONNECTION_FIELDS = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_PROFILING_FIELDS = {
    "profiling": "enable_profiling",
    "contention-profiling": "enable_contention_profiling",
}


class ValidatedFlags(msgspec.Struct, frozen=True):
    """A command line that makes sense: every flag's value, and the names of those that were given."""

    values: Mapping[str, Any]
    given: frozenset[str]
    gates: FeatureGates
    warnings: tuple[str, ...] = ()
    """What to say of flags that do less than they say, a line each."""
    wants_help: bool = False

    def at(self, release: Release) -> "ValidatedFlags":
        """Give the same command line with the gates of that release.

        Raises:
            FeatureGateError: --feature-gates or a version is wrong there.
        """
        return msgspec.structs.replace(self, gates=_gates(self.values, release))

    @property
    def release(self) -> Release | None:
        """The release that --release names; None where the API server's is followed."""
        return named(self.values["release"]) if self.values["release"] else None

    @property
    def gate_warnings(self) -> tuple[str, ...]:
        """What to say of gates that are on and not followed to the end, a line each."""
        return tuple(_gate_warnings(self.gates))

    def value(self, name: str) -> Any:
        """Give a flag's value, its default where it was not given.

        Raises:
            KeyError: there is no such flag.
        """
        return self.values[name]

    @property
    def config_file(self) -> str:
        """The configuration file's path, empty for none."""
        return str(self.values["config"])

    @property
    def plugins_file(self) -> str:
        """The path of the list of out-of-tree plugins, empty for none."""
        return str(self.values["plugins"])

    @property
    def write_config_to(self) -> str:
        """Where to write the effective configuration before exiting, empty for not at all."""
        return str(self.values["write-config-to"])

    @property
    def record_to(self) -> str:
        """The folder to record to, empty for not at all."""
        return str(self.values["record-to"])

    @property
    def record_most_bytes(self) -> int:
        """How much recordings may take."""
        return int(self.values["record-most-mib"]) << 20

    @property
    def master(self) -> str:
        """The API server's address that overrides the kubeconfig's, empty for none."""
        return str(self.values["master"])

    @property
    def version(self) -> str:
        """What --version was given: empty, true, raw, or the version to report."""
        return str(self.values["version"])

    @property
    def secure_port(self) -> int:
        """The port to serve on, 0 for none."""
        return int(self.values["secure-port"])

    @property
    def bind_address(self) -> str:
        """The address to serve on."""
        return str(self.values["bind-address"])

    @property
    def verbosity(self) -> int:
        """How much to log."""
        return int(self.values["v"])

    @property
    def pod_max_in_unschedulable_pods(self) -> Duration:
        """How long a pod stays unschedulable before it is tried again whatever happens."""
        return Duration(self.values["pod-max-in-unschedulable-pods-duration"])

    @property
    def request_timeout(self) -> Duration:
        """How long the API server may take to answer a request."""
        return Duration(self.values["request-timeout"])


def parse_flags(
    arguments: Sequence[str], extra: Iterable[Flag] = (), program: str = PROGRAM
) -> ValidatedFlags:
    """Read a command line without the program's name; `extra` adds flags to kube-scheduler's.

    The gates are those of the release that --release names, else of the oldest one that takes the values.

    Raises:
        FlagError: a flag or its value is wrong.
        ReleaseError: --release names none that is followed.
        FeatureGateError: --feature-gates, or a version that they go by, is wrong in every release.
    """
    flags = (*FLAGS, *extra)
    parsed = parse_arguments(arguments, flags)
    values = MappingProxyType({flag.name: flag.default for flag in flags} | parsed.given)
    options = ValidatedFlags(values, frozenset(parsed.given), FeatureGates(), wants_help=parsed.wants_help)
    if options.wants_help:
        return options
    _check(parsed, values, program)
    warnings = tuple(_warnings(parsed, by_name(flags)))
    return _in_some_release(msgspec.structs.replace(options, warnings=warnings))


def _in_some_release(options: ValidatedFlags) -> ValidatedFlags:
    if options.release is not None:
        return options.at(options.release)
    found: dict[str, list[str]] = {}
    for release in RELEASES:
        try:
            return options.at(release)
        except FeatureGateError as error:
            for message in error.messages:
                found.setdefault(message, []).append(shown(release))
    raise FeatureGateError(*(_in_releases(message, releases) for message, releases in found.items()))


def _in_releases(message: str, releases: Sequence[str]) -> str:
    """The message, with the releases that it is true of where these are not all."""
    return message if len(releases) == len(RELEASES) else f"{message} (Kubernetes {', '.join(releases)})"


def _gates(values: Mapping[str, Any], release: Release) -> FeatureGates:
    version = parse_versions(release, values["emulated-version"], values["min-compatibility-version"])
    return parse_feature_gates(values["feature-gates"], version)


def _check(parsed: ParsedFlags, values: Mapping[str, Any], program: str) -> None:
    if any(parsed.arguments):
        shown = " ".join(map(quote, parsed.arguments))
        raise FlagError(f"{quote(program)} does not take any arguments, got [{shown}]")
    port = values["secure-port"]
    if not 0 <= port <= _MAX_PORT:
        rule = f"must be between 0 and {_MAX_PORT}, inclusive. 0 for turning off secure port"
        raise FlagError(f"--secure-port {port} {rule}")
    if not _LEAST_RECORDING_MIB <= values["record-most-mib"] <= _MAX_RECORDING_MIB:
        rule = f"must be between {_LEAST_RECORDING_MIB} and {_MAX_RECORDING_MIB}, inclusive"
        raise FlagError(f"--record-most-mib {values['record-most-mib']} {rule}")
    if values["request-timeout"] <= 0:
        raise FlagError(f"--request-timeout {Duration(values['request-timeout'])} must be greater than zero")


def _warnings(parsed: ParsedFlags, flags: Mapping[str, Flag]) -> Iterable[str]:
    for name in parsed.given:
        effect = flags[name].effect
        if effect is Effect.NONE:
            yield f"--{name} has no effect in Berth"
        elif effect is Effect.DEPRECATED and parsed.given.get("config"):
            yield f"--{name} is deprecated and ignored, because --config is given"
        elif effect is Effect.DEPRECATED:
            yield f"--{name} is deprecated, use --config"


def _gate_warnings(gates: FeatureGates) -> Iterable[str]:
    for name, effect in NOT_COVERED.items():
        if is_known(name, gates.version.binary) and gates.enabled(name):
            yield f"feature gate {name} is not covered by Berth yet: {effect}"


class StartSettings(msgspec.Struct, frozen=True):
    """All that a scheduler starts with: its configuration, its out-of-tree plugins, and where more appear.

    `shards` are empty where one lease is for all profiles.
    """

    loaded: LoadedConfig
    sidecars: tuple[SidecarSpec, ...]
    directory: SocketDirectory | None = None
    shards: tuple[Shard, ...] = ()


def read_settings(
    options: ValidatedFlags,
    read: ReadFile = read_file,
    *,
    commands: bool = False,
    further: Iterable[SidecarSpec] = (),
) -> StartSettings:
    """Read the files that a command line names, and give what it starts a scheduler with.

    The plugins are those of --plugins, or else of the list behind the configuration in its file; shards are
    those of the list behind the configuration. With `commands` the list may have plugins that are yet to be
    started. `further` are plugins that come after those of the list; one of a name that the list has is
    passed over.

    Raises:
        ConfigError: a file is unreadable, or what `load` raises.
    """
    source = _content("config", options.config_file, read) if options.config_file else None
    listed = PluginList()
    if options.plugins_file:
        content = _content("plugins", options.plugins_file, read)
        listed = read_plugin_list(content, options.plugins_file, commands=commands)
    elif source is not None:
        listed = list_beside(source, options.config_file, commands=commands)
    names = {spec.name for spec in listed.plugins}
    plugins = (*listed.plugins, *(spec for spec in further if spec.name not in names))
    loaded = load_with_flags(options, source, out_of_tree=catalogue_of(plugins), read=read)
    shards = () if source is None else shards_beside(source, options.config_file)
    check_shards(shards, loaded, options.config_file)
    return StartSettings(loaded, plugins, listed.directory, shards)


def _content(flag: str, path: str, read: ReadFile) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise FlagError(f"--{flag}: open {path}: {(error.strerror or str(error)).lower()}") from None


def load_with_flags(
    options: ValidatedFlags,
    source: bytes | str | None,
    *,
    out_of_tree: Catalogue = MappingProxyType({}),
    read: ReadFile = read_file,
) -> LoadedConfig:
    """Give what a scheduler starts with: the file's content, None if no file was named, under the flags.

    Raises:
        ConfigError: as `load` does.
    """
    gates = options.gates
    if source is not None:

        def amend(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
            return apply_election_flags(configuration, options)

        return load(source, gates=gates, out_of_tree=out_of_tree, amend=amend, read=read)
    configuration = parse(None, gates)
    validate(configuration, gates)
    configuration = apply_election_flags(_apply_deprecated_flags(configuration, options), options)
    return build(configuration, gates=gates, out_of_tree=out_of_tree, read=read)


def apply_election_flags(
    configuration: SchedulerConfiguration, options: ValidatedFlags
) -> SchedulerConfiguration:
    """Give the configuration with the leader-election flags that were given put over it."""
    changes = {
        name.removeprefix(_ELECTION_PREFIX).replace("-", "_"): options.values[name]
        for name in options.given
        if name.startswith(_ELECTION_PREFIX)
    }
    if "leader-elect" in options.given:
        changes["leader_elect"] = options.values["leader-elect"]
    election = msgspec.structs.replace(configuration.leader_election, **changes)
    return msgspec.structs.replace(configuration, leader_election=election)


def _apply_deprecated_flags(
    configuration: SchedulerConfiguration, options: ValidatedFlags
) -> SchedulerConfiguration:
    connection = msgspec.structs.replace(
        configuration.client_connection, **_chosen(options, _CONNECTION_FIELDS)
    )
    profiling = _chosen(options, _PROFILING_FIELDS)
    return msgspec.structs.replace(configuration, client_connection=connection, **profiling)


def _chosen(options: ValidatedFlags, fields: Mapping[str, str]) -> dict[str, Any]:
    return {fields[name]: options.values[name] for name in fields if name in options.given}


def usage(extra: Iterable[Flag] = (), program: str = PROGRAM) -> str:
    """Give the usage text, flags by section."""
    lines = [f"Usage: {program} [flags]"]
    section = ""
    for flag in (*FLAGS, *extra):
        if flag.section != section:
            section = flag.section
            lines += ["", f"{section[0].upper()}{section[1:]} flags:"]
        lines.append(_usage_line(flag))
    return "\n".join(lines)


def _usage_line(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    value = "" if flag.kind is FlagKind.BOOL else f" {flag.kind.value}"
    default = ",".join(flag.default) if isinstance(flag.default, tuple) else str(flag.default).lower()
    notes = f" (default {default})" if default not in {"", "false"} else ""
    notes += " [no effect]" if flag.effect is Effect.NONE else ""
    return f"  {short}--{flag.name}{value}\n        {flag.help}{notes}"
