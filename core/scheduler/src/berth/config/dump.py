"""The effective configuration as v1 again: for --write-config-to, /configz and logs.

The result can be read as input and gives the same plugin lists.
"""

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from berth.config.duration import Duration
from berth.config.go_text import float32_text
from berth.config.plugin_args import (
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    InTreeArgs,
    NodeSelector,
    NodeSelectorRequirement,
    ResourceSpec,
    TopologySpreadConstraint,
)
from berth.config.reading.yaml_scalars import resolve_plain
from berth.config.types import (
    API_VERSION,
    KIND,
    ClientConnection,
    ExtenderConfig,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    PluginEntry,
    SchedulerConfiguration,
)

# Fields that are written even when empty; numbers, durations and sections are always written.
_KEPT: Mapping[type[msgspec.Struct], frozenset[str]] = MappingProxyType(
    {
        LeaderElection: frozenset(LeaderElection.__struct_fields__),
        ClientConnection: frozenset(ClientConnection.__struct_fields__),
        SchedulerConfiguration: frozenset({"enable_profiling", "enable_contention_profiling"}),
        PluginEntry: frozenset({"name"}),
        PluginConfig: frozenset({"name"}),
        ExtenderConfig: frozenset({"url_prefix"}),
        ManagedResource: frozenset({"name"}),
        ResourceSpec: frozenset({"name"}),
        InterPodAffinityArgs: frozenset({"ignore_preferred_terms_of_existing_pods"}),
        DynamicResourcesArgs: frozenset({"filter_timeout"}),
        NodeSelector: frozenset({"node_selector_terms"}),
        NodeSelectorRequirement: frozenset({"key", "operator"}),
        TopologySpreadConstraint: frozenset({"topology_key", "when_unsatisfiable"}),
    }
)
_STRING = "tag:yaml.org,2002:str"


def to_v1(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """Give the configuration as plain JSON values, apiVersion and kind included."""
    return {"apiVersion": API_VERSION, "kind": KIND, **_section(configuration)}


def to_yaml(configuration: SchedulerConfiguration) -> str:
    """Give the configuration as YAML: sorted keys, lists flush with their keys."""
    return yaml_text(to_v1(configuration), sort_keys=True)


def yaml_text(document: Any, *, sort_keys: bool = False) -> str:
    """Give plain JSON values as YAML that every reader reads as the same values, such as a text `n`."""
    text: str = yaml.dump(
        document,
        Dumper=_Dumper,
        default_flow_style=False,
        allow_unicode=True,
        width=1 << 16,
        sort_keys=sort_keys,
    )
    return text


def _section(section: msgspec.Struct) -> dict[str, Any]:
    kept = _KEPT.get(type(section), frozenset())
    names = zip(section.__struct_fields__, section.__struct_encode_fields__, strict=True)
    plain = {wire: _plain(getattr(section, name)) for name, wire in names if _written(section, name, kept)}
    if isinstance(section, InTreeArgs):
        plain |= {"apiVersion": API_VERSION, "kind": type(section).__name__}
    return plain


def _written(section: msgspec.Struct, name: str, kept: frozenset[str]) -> bool:
    value = getattr(section, name)
    if isinstance(section, PluginEntry) and name == "weight":
        return True
    if isinstance(section, ExtenderConfig) and name == "weight":
        return bool(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return name in kept or number or isinstance(value, msgspec.Struct) or bool(value)


def _plain(value: Any) -> Any:
    if isinstance(value, PluginEntry):
        return {**_section(value), "weight": value.weight or 0}
    if isinstance(value, msgspec.Struct):
        return _section(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, float):
        return msgspec.json.decode(float32_text(value))
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


class _Dumper(yaml.SafeDumper):
    """A dumper whose plain scalars mean the same to every reader."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal parts out each time."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    implied = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # no stub
    ambiguous = resolve_plain(text) != text or implied != _STRING
    style = "|" if "\n" in text else '"' if ambiguous else None
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _text)
