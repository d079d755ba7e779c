"""A Scheduler as KubeSchedulerConfiguration and PluginList, checked as the scheduler itself checks them."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from berth.config import ConfigError, LoadedConfig, load, parse_feature_gates
from berth.config.complaints import complaint_lines
from berth.config.dump import yaml_text
from berth.config.out_of_tree.plugin_list import parse_plugin_list
from berth.config.out_of_tree.sidecars import SidecarSpec, catalogue_of
from berth.config.reading.own_documents import PLUGIN_LIST
from berth.config.releases.release import DEFAULT, Release, effective
from berth.config.types import API_VERSION, KIND
from berth.operator.errors import ConfigurationProblemError, MissingPluginError
from berth.operator.kinds import PLUGIN_SECRETS, VERSION, Json, SchedulerKey
from berth.operator.rendering.names import sidecar_name
from berth.operator.rendering.nesting import DEEPEST, too_deep

SECURE_PORT = 10259
SOCKETS = "/run/berth"
CERTIFICATES = "/etc/berth/tls"
# Of a SchedulerPlugin's spec, what a PluginList's entry has under the same name.
_SAME = ("extensionPoints", "failurePolicy", "timeout", "exemptPods", "shadow", "metadataKeys")
# Of a Scheduler's spec, what the configuration has under the same name.
_COPIED = (
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "clientConnection",
    "extenders",
)


class Configuration(msgspec.Struct, frozen=True):
    """What a scheduler is started with: two files, the gates, and what they amount to."""

    scheduler_yaml: str
    plugins_yaml: str
    feature_gates: tuple[str, ...]
    loaded: LoadedConfig
    plugins: tuple[Json, ...]
    """The SchedulerPlugins, in the order of the Scheduler's list."""


def configuration(
    scheduler: Json, found: Mapping[str, Json], lease: SchedulerKey, release: Release = DEFAULT
) -> Configuration:
    """Give the checked configuration of a Scheduler; `found` holds the SchedulerPlugins of its namespace.

    Feature gates are those of the release that it is to follow.

    Raises: MissingPluginError, ConfigurationProblemError.
    """
    spec = scheduler["spec"]
    plugins = _plugins(spec, found)
    _check(scheduler, plugins)
    document = _document(spec, plugins, lease)
    listed: Json = {
        "apiVersion": VERSION,
        "kind": PLUGIN_LIST,
        "plugins": [_entry(plugin) for plugin in plugins],
    }
    gates = tuple(
        f"{name}={str(on).lower()}" for name, on in sorted((spec.get("featureGates") or {}).items())
    )
    texts = yaml_text(document), yaml_text(listed)
    return Configuration(*texts, gates, _checked(*texts, gates, release), plugins)


def address(plugin: Json) -> str:
    """Give where a plugin listens: in its volume, in a folder that it makes private, or where it says."""
    given = plugin["spec"].get("address")
    return str(given) if given else f"unix:{SOCKETS}/{plugin['metadata']['name']}/private/plugin.sock"


def _plugins(spec: Json, found: Mapping[str, Json]) -> tuple[Json, ...]:
    names = [one["name"] for one in spec.get("plugins") or ()]
    missing = [name for name in names if name not in found]
    if missing:
        raise MissingPluginError(*missing)
    return tuple(found[name] for name in names)


def _check(scheduler: Json, plugins: Sequence[Json]) -> None:
    """Raises: ConfigurationProblemError where files or a pod cannot be made of the resources at all."""
    documents = [("Scheduler", scheduler), *(("SchedulerPlugin", one) for one in plugins)]
    lines = [
        f"{kind} {one['metadata']['name']}: {place}: nested deeper than {DEEPEST} levels; make it flatter"
        for kind, one in documents
        if (place := too_deep(one["spec"]))
    ]
    names = [plugin["metadata"]["name"] for plugin in plugins]
    lines += [
        f"plugins {one} and {other} would both be {sidecar_name(one)} in the pod; rename one of them"
        for index, one in enumerate(names)
        for other in names[index + 1 :]
        if sidecar_name(one) == sidecar_name(other)
    ]
    lines += _port_clashes(plugins)
    lines += [line for plugin in plugins for line in _secrets_of_others(plugin)]
    if lines:
        raise ConfigurationProblemError(*lines)


def _secrets_of_others(plugin: Json) -> Iterator[str]:
    """Why Secrets that a plugin names are none for plugins.

    Who writes SchedulerPlugins can read by them what the kubelet reads, the operator's own key included, and
    has no right to read Secrets. The operator has none either: a Secret's name is all that it can go by.
    """
    spec, name = plugin["spec"], plugin["metadata"]["name"]
    sources = [(one.get("valueFrom") or {}).get("secretKeyRef") for one in spec.get("env") or ()]
    named = [("env.valueFrom.secretKeyRef", source.get("name")) for source in sources if source]
    if "tls" in spec:
        named.append(("tls.secretName", spec["tls"]["secretName"]))
    for field, secret in named:
        if PLUGIN_SECRETS not in str(secret):
            yield (
                f"SchedulerPlugin {name}: {field}: {secret} is no Secret for plugins; "
                f"give one whose name has {PLUGIN_SECRETS} in it"
            )


def _port_clashes(plugins: Sequence[Json]) -> Iterator[str]:
    """Why containers of one pod can't have their ports, which they share."""
    owners = {SECURE_PORT: "the scheduler"}
    for plugin in plugins:
        port, name = plugin["spec"].get("metricsPort"), plugin["metadata"]["name"]
        if port in owners:
            yield f"SchedulerPlugin {name}: metricsPort: {port} is that of {owners[port]}; choose another one"
        elif port is not None:
            owners[port] = f"plugin {name}"


def _document(spec: Json, plugins: Sequence[Json], lease: SchedulerKey) -> Json:
    election = dict(spec.get("leaderElection") or {"leaderElect": True})
    election |= {"resourceName": lease.name, "resourceNamespace": lease.namespace}
    profiles = copy.deepcopy(spec["profiles"])
    for plugin in plugins:
        for profile in profiles:
            if profile["schedulerName"] in (plugin["spec"].get("profiles") or ()):
                _enable(profile, plugin)
    copied = {name: spec[name] for name in _COPIED if name in spec}
    head = {"apiVersion": API_VERSION, "kind": KIND}
    return {**head, "leaderElection": election, **copied, "profiles": profiles}


def _enable(profile: Json, plugin: Json) -> None:
    name = plugin["metadata"]["name"]
    sets = profile.setdefault("plugins", {})
    mentioned = [one["name"] for point in sets.values() for one in point.get("enabled") or ()]
    if name not in mentioned:
        entry = {"name": name, "weight": plugin["spec"].get("weight", 1)}
        sets.setdefault("multiPoint", {}).setdefault("enabled", []).append(entry)


def _entry(plugin: Json) -> Json:
    spec = plugin["spec"]
    entry: Json = {"name": plugin["metadata"]["name"], "address": address(plugin)}
    entry |= {name: spec[name] for name in _SAME if name in spec}
    if "runAsUser" in spec:
        entry["user"] = spec["runAsUser"]
    if "tls" in spec:
        entry["tls"] = _tls(plugin)
    if "arguments" in spec:
        entry["args"] = spec["arguments"]
    accepted = (plugin.get("status") or {}).get("accepted")
    if accepted is not None and accepted.get("arguments") != spec.get("arguments"):
        entry["acceptedArgs"] = accepted.get("arguments")
    return entry


def _tls(plugin: Json) -> Json:
    folder, given = f"{CERTIFICATES}/{plugin['metadata']['name']}", plugin["spec"]["tls"]
    # As Secrets of type kubernetes.io/tls, and cert-manager's, call them.
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    made: Json = {field: f"{folder}/{file}" for field, file in files.items()}
    return {**made, "serverName": given["serverName"]} if given.get("serverName") else made


def _checked(scheduler_yaml: str, plugins_yaml: str, gates: Sequence[str], release: Release) -> LoadedConfig:
    try:
        specs: tuple[SidecarSpec, ...] = parse_plugin_list(plugins_yaml, "plugins")
        parsed = parse_feature_gates(gates, effective(release))
        return load(scheduler_yaml, gates=parsed, out_of_tree=catalogue_of(specs), read=_no_file)
    except ConfigError as error:
        raise ConfigurationProblemError(*complaint_lines(error)) from error


def _no_file(path: str) -> Any:
    raise FileNotFoundError(
        2, "No such file or directory in the scheduler's pod; put the data itself here", path
    )
