"""How the plugins of a simulation are reached: the option --plugin NAME=COMMAND or NAME=ADDRESS, or a list.

Its other settings stay those of its entry or SchedulerPlugin; only its command or address is replaced. One
that has neither takes part in the profiles that enable it, as an entry with a name alone does.

Called by: plugin_settings.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from berth.config.errors import PluginListError
from berth.config.out_of_tree.plugin_list import read_plugin_list
from berth.config.out_of_tree.sidecars import SidecarSpec, is_unix
from berth.config.reading.own_documents import API_VERSION, PLUGIN_LIST
from berth.simulation.errors import PluginsError

Ways = Mapping[str, SidecarSpec]
_ADDRESS: Final = re.compile(r"[^\s/]+:[0-9]+")


def read_ways(texts: Iterable[str]) -> dict[str, SidecarSpec]:
    """The values of --plugin by name, of which only address and command count. Raises: PluginsError."""
    found: dict[str, SidecarSpec] = {}
    for text in texts:
        name, equals, way = text.partition("=")
        if not (name and equals and way.strip()):
            raise PluginsError(f"--plugin: {text[:60]!r}: write NAME=COMMAND, or NAME=ADDRESS")
        if name in found:
            raise PluginsError(f"--plugin: {name} is given twice; give each plugin once")
        found[name] = _read(name, way)
    return found


def _read(name: str, way: str) -> SidecarSpec:
    entry: dict[str, object] = {"name": name}
    if is_unix(way) or _ADDRESS.fullmatch(way):
        entry["address"] = way
    else:
        try:
            entry["command"] = shlex.split(way)
        except ValueError as error:
            raise PluginsError(f"--plugin {name}: {error}; quote the command as for a shell") from None
    listed = {"apiVersion": API_VERSION, "kind": PLUGIN_LIST, "plugins": [entry]}
    try:
        return read_plugin_list(json.dumps(listed), "--plugin", commands=True).plugins[0]
    except PluginListError as error:
        said = error.messages[0].removeprefix("--plugin: plugins[0].")
        raise PluginsError(f"--plugin {name}: {said}") from None


def read_list(plugins_file: str) -> dict[str, SidecarSpec]:
    """The entries of a list by name. Raises: PluginsError, PluginListError."""
    try:
        data = Path(plugins_file).read_bytes()
    except OSError as error:
        raise PluginsError(f"--plugins: {plugins_file}: {error.strerror or error}; give a list") from None
    return {spec.name: spec for spec in read_plugin_list(data, plugins_file, commands=True).plugins}


def reached(sidecars: Iterable[SidecarSpec], ways: Ways) -> tuple[SidecarSpec, ...]:
    """The plugins, each with its command or address."""
    return tuple(_over(spec, ways[spec.name]) if spec.name in ways else spec for spec in sidecars)


def check_used(sidecars: Iterable[SidecarSpec], places: Mapping[str, str], where: str) -> None:
    """Refuse a command or address of a plugin that is none of these; `places` say where each was given.

    Raises: PluginsError.
    """
    names = list(dict.fromkeys(spec.name for spec in sidecars))
    for name in sorted(places.keys() - set(names)):
        known = f"there are {', '.join(names)}" if names else "there are none"
        said = f"no profile of {where} uses a plugin of that name" if where else "no profile uses it"
        remedy = f"enable {name} in a profile, under plugins.multiPoint.enabled"
        raise PluginsError(f"{places[name]}: {said}; {known}; {remedy}")


def _over(spec: SidecarSpec, way: SidecarSpec) -> SidecarSpec:
    return replace(spec, address=way.address, command=way.command, tls=way.tls, user=way.user)
