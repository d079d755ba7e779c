"""From a file's text to what a scheduler runs: the five stages in order; the first that fails ends it.

decode ─ default ─ flags ─ validate ─ build
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from berth.config.catalogue import Catalogue, ExtensionPoint, in_tree
from berth.config.defaults import complete
from berth.config.extenders import (
    DEFAULT_HTTP_TIMEOUT,
    ReadFile,
    build_extenders,
    ignore_managed_resources,
    read_file,
)
from berth.config.feature_gates import FeatureGates
from berth.config.profiles import ResolvedProfile, resolve_profiles
from berth.config.reading.decoding import decode
from berth.config.rules.validation import validate
from berth.config.types import ExtenderConfig, SchedulerConfiguration


class LoadedConfig(msgspec.Struct, frozen=True):
    """A configuration that a scheduler can start with.

    `configuration` is the effective one, `profiles` what runs in each profile, `extenders` those of
    the configuration in calling order.
    """

    configuration: SchedulerConfiguration
    profiles: tuple[ResolvedProfile, ...]
    extenders: tuple[ExtenderConfig, ...]
    gates: FeatureGates


def parse(source: bytes | str | None, gates: FeatureGates | None = None) -> SchedulerConfiguration:
    """Give a file's configuration with defaults filled in and nothing checked yet; None stands for no file.

    Raises:
        DecodeError: the text is no KubeSchedulerConfiguration.
    """
    fields = {} if source is None else decode(source)
    return complete(fields, gates or FeatureGates())


def load(
    source: bytes | str | None,
    *,
    gates: FeatureGates | None = None,
    out_of_tree: Mapping[str, frozenset[ExtensionPoint]] = MappingProxyType({}),
    amend: Callable[[SchedulerConfiguration], SchedulerConfiguration] | None = None,
    read: ReadFile = read_file,
) -> LoadedConfig:
    """Give what a configuration file, or None for the defaults, starts a scheduler with.

    `out_of_tree` names plugins beside the in-tree ones with the points that each serves; `amend` applies
    flags before validation; `read` opens the files that extenders' TLS settings name.

    Raises:
        ConfigError: the first stage that fails, with everything it has to complain about.
    """
    gates = gates or FeatureGates()
    configuration = parse(source, gates)
    if amend is not None:
        configuration = amend(configuration)
    validate(configuration, gates)
    return build(configuration, gates=gates, out_of_tree=out_of_tree, read=read)


def build(
    configuration: SchedulerConfiguration,
    *,
    gates: FeatureGates,
    out_of_tree: Mapping[str, frozenset[ExtensionPoint]] = MappingProxyType({}),
    read: ReadFile = read_file,
) -> LoadedConfig:
    """Do the last stage alone: make extenders and profiles of a valid configuration.

    Raises:
        BuildError: the first problem met.
    """
    catalogue: Catalogue = {**in_tree(gates), **out_of_tree}
    extenders = build_extenders(configuration.extenders, read)
    profiles = ignore_managed_resources(configuration.extenders, configuration.profiles)
    resolved = resolve_profiles(msgspec.structs.replace(configuration, profiles=profiles), catalogue)
    effective = msgspec.structs.replace(
        configuration,
        profiles=tuple(profile.source for profile in resolved),
        extenders=tuple(_with_timeout(extender) for extender in configuration.extenders),
    )
    return LoadedConfig(effective, resolved, extenders, gates)


def _with_timeout(extender: ExtenderConfig) -> ExtenderConfig:
    return msgspec.structs.replace(extender, http_timeout=extender.http_timeout or DEFAULT_HTTP_TIMEOUT)
