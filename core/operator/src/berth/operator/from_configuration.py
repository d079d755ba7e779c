"""A KubeSchedulerConfiguration, and the PluginList beside it, as resources: the way into the operator."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from berth.config.out_of_tree.sidecars import POLICY_POINTS, SidecarSpec, is_unix
from berth.config.reading.document import read_document
from berth.config.reading.own_documents import SHARD_LIST, own_document
from berth.config.reading.tree import to_plain
from berth.operator.errors import ConfigurationProblemError
from berth.operator.kinds import PLUGIN_SECRETS, VERSION, Json

# Of the file, what a Scheduler has under the same name.
_SAME: Final = (
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "extenders",
)
_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "clientConnection": ("qps", "burst"),
    "leaderElection": (
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "retryPeriod",
        "resourceName",
        "resourceNamespace",
    ),
}
_HEAD: Final = ("apiVersion", "kind", "profiles")
_SHARDS_REFUSED: Final = (
    f"{SHARD_LIST}: shards: a Scheduler has no such field; remove the {SHARD_LIST}: one replica leads all "
    "profiles; or put each shard's profiles into a file and so into a Scheduler of their own"
)


class Converted(msgspec.Struct, frozen=True):
    """The resources, and a line for each field that has no place in them."""

    documents: tuple[Json, ...]
    notes: tuple[str, ...]


def converted(
    source: bytes,
    sidecars: Sequence[SidecarSpec],
    *,
    name: str,
    images: Mapping[str, str],
    gates: Sequence[str] = (),
) -> Converted:
    """Give the resources of a valid file; `images` has the image of each plugin on a unix socket.

    `gates` are valid feature gates as flags write them: A=true,B=false.

    Raises: ConfigurationProblemError where a plugin's image is not known, or there are shards.
    """
    if own_document(source, SHARD_LIST) is not None:
        raise ConfigurationProblemError(_SHARDS_REFUSED)
    written: Any = to_plain(read_document(source).value)
    spec: Json = {"profiles": written.get("profiles") or [{"schedulerName": "default-scheduler"}]}
    spec |= {field: written[field] for field in _SAME if written.get(field) is not None}
    for section, fields in _SECTIONS.items():
        kept = {field: written[section][field] for field in fields if field in (written.get(section) or {})}
        if kept:
            spec[section] = kept
    pairs = [pair.partition("=") for text in gates for pair in text.split(",") if pair]
    if pairs:
        spec["featureGates"] = {gate.strip(): value.strip().lower() == "true" for gate, _, value in pairs}
    missing = [one.name for one in sidecars if is_unix(one.address) and one.name not in images]
    if missing:
        raise ConfigurationProblemError(
            *(f"plugin {one} on a unix socket becomes a sidecar: give --image {one}=IMAGE" for one in missing)
        )
    if sidecars:
        spec["plugins"] = [{"name": one.name} for one in sidecars]
    documents = [_resource("Scheduler", name, spec)]
    documents += [_resource("SchedulerPlugin", one.name, _plugin(one, images)) for one in sidecars]
    notes = [*_notes(written), *_plugin_notes(sidecars)]
    return Converted(tuple(documents), tuple(notes))


def _resource(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _plugin(sidecar: SidecarSpec, images: Mapping[str, str]) -> Json:
    spec: Json = {"image": images[sidecar.name]} if is_unix(sidecar.address) else {"address": sidecar.address}
    spec["extensionPoints"] = sorted(point.value for point in sidecar.extension_points)
    spec["failurePolicy"] = {
        point.value: sidecar.policy_at(point).value
        for point in sorted(sidecar.extension_points & POLICY_POINTS)
    }
    if sidecar.timeout is not None:
        spec["timeout"] = str(sidecar.timeout)
    if sidecar.exempt_pods is not None:
        exempt = {
            "namespaces": sorted(sidecar.exempt_pods.namespaces),
            "matchLabels": dict(sidecar.exempt_pods.match_labels),
        }
        spec["exemptPods"] = {field: value for field, value in exempt.items() if value}
    if sidecar.metadata_keys is not None:
        spec["metadataKeys"] = list(sidecar.metadata_keys)
    if sidecar.profiles:
        spec |= {"profiles": list(sidecar.profiles), "weight": sidecar.weight}
    if sidecar.tls is not None:
        named = {"serverName": sidecar.tls.server_name} if sidecar.tls.server_name else {}
        spec["tls"] = {"secretName": _secret(sidecar), **named}
    if sidecar.user is not None and "image" in spec:
        spec["runAsUser"] = sidecar.user
    if sidecar.shadow:
        spec["shadow"] = True
    if sidecar.args is not None:
        spec["arguments"] = sidecar.args
    return spec


def _plugin_notes(sidecars: Sequence[SidecarSpec]) -> Iterator[str]:
    for one in sidecars:
        if one.tls is not None:
            files = f"ca.crt={one.tls.ca_file}, tls.crt={one.tls.cert_file}, tls.key={one.tls.key_file}"
            yield f"plugins {one.name}: tls: create the Secret {_secret(one)} of {files}"


def _secret(sidecar: SidecarSpec) -> str:
    return f"{PLUGIN_SECRETS}{sidecar.name}-tls"


def _notes(written: Json) -> Iterator[str]:
    for field, value in written.items():
        if field in _SECTIONS:
            for inner in value or {}:
                if inner not in _SECTIONS[field]:
                    yield f"{field}.{inner} is left out: the operator sees to it"
        elif field not in (*_SAME, *_HEAD):
            yield f"{field} is left out: a Scheduler has no such field"
