"""Stage 5, first half: extenders are put in calling order and their TLS material is loaded and checked.

Source: pkg/scheduler/scheduler.go (buildExtenders), pkg/scheduler/extender.go, client-go/transport (v1.36).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from berth.config.duration import Duration
from berth.config.errors import BuildError
from berth.config.plugin_args import NodeResourcesFitArgs
from berth.config.rules.tls_material import check_authorities, check_pair
from berth.config.types import ExtenderConfig, ExtenderTls, PluginConfig, Profile

ReadFile: TypeAlias = Callable[[str], bytes]

DEFAULT_HTTP_TIMEOUT = Duration.of_seconds(5)
_PREFIX = "couldn't build extenders: "
_FIT = "NodeResourcesFit"


def read_file(path: str) -> bytes:
    """Give a file's content."""
    return Path(path).read_bytes()


def build_extenders(
    extenders: Sequence[ExtenderConfig], read: ReadFile = read_file
) -> tuple[ExtenderConfig, ...]:
    """Give the extenders in calling order, files loaded, unset timeouts filled in.

    Raises:
        BuildError: TLS material is unreadable or contradicts itself.
    """
    built = [_built(extender, read) for extender in extenders]
    # Ignorable ones come last: a failure of theirs must not keep the others from being asked.
    return tuple(sorted(built, key=lambda extender: extender.ignorable))


def _built(extender: ExtenderConfig, read: ReadFile) -> ExtenderConfig:
    tls = extender.tls_config or ExtenderTls()
    has_ca = bool(tls.ca_file or tls.ca_data)
    if extender.enable_https and not has_ca:
        tls = msgspec.structs.replace(tls, insecure=True)
    if has_ca and tls.insecure:
        raise BuildError(
            f"{_PREFIX}specifying a root certificates file with the insecure flag is not allowed"
        )
    if extender.tls_config is not None or extender.enable_https:
        tls = _loaded(tls, read)
    timeout = extender.http_timeout or DEFAULT_HTTP_TIMEOUT
    return msgspec.structs.replace(
        extender, http_timeout=timeout, tls_config=tls if tls != ExtenderTls() else extender.tls_config
    )


def _loaded(tls: ExtenderTls, read: ReadFile) -> ExtenderTls:
    has_pair = bool((tls.cert_file or tls.cert_data) and (tls.key_file or tls.key_data))
    if not (tls.ca_file or tls.ca_data or has_pair or tls.insecure or tls.server_name):
        return tls
    loaded = msgspec.structs.replace(
        tls,
        ca_data=tls.ca_data or _content(tls.ca_file, read),
        cert_data=tls.cert_data or _content(tls.cert_file, read),
        key_data=tls.key_data or _content(tls.key_file, read),
    )
    try:
        if tls.ca_file or tls.ca_data:
            check_authorities(loaded.ca_data)
    except ValueError as error:
        raise BuildError(f"{_PREFIX}unable to load root certificates: {error}") from None
    try:
        # A pair that comes from files is read again at each connection, and checked there.
        if has_pair and (tls.cert_data or tls.key_data):
            check_pair(loaded.cert_data, loaded.key_data)
    except ValueError as error:
        raise BuildError(f"{_PREFIX}{error}") from None
    return loaded


def _content(path: str, read: ReadFile) -> bytes:
    if not path:
        return b""
    try:
        return read(path)
    except IsADirectoryError:
        raise BuildError(f"{_PREFIX}read {path}: is a directory") from None
    except OSError as error:
        raise BuildError(f"{_PREFIX}open {path}: {(error.strerror or str(error)).lower()}") from None


def ignore_managed_resources(
    extenders: Sequence[ExtenderConfig], profiles: Sequence[Profile]
) -> tuple[Profile, ...]:
    """Give the profiles with the resources that extenders alone look after taken out of the fit check.

    They replace what the file says is ignored, in every profile.

    Raises:
        BuildError: a profile has no arguments of NodeResourcesFit to put them in.
    """
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    return tuple(_ignoring(profile, ignored) for profile in profiles) if ignored else tuple(profiles)


def _ignoring(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    entries = list(profile.plugin_config)
    for index, entry in enumerate(entries):
        if entry.name == _FIT:
            assert isinstance(entry.args, NodeResourcesFitArgs)
            args = msgspec.structs.replace(entry.args, ignored_resources=ignored)
            entries[index] = PluginConfig(name=_FIT, args=args)
            return msgspec.structs.replace(profile, plugin_config=tuple(entries))
    raise BuildError(f"{_PREFIX}can't find NodeResourcesFitArgs in plugin config")
