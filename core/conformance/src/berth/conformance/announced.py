"""What a plugin's announcement says of the pods, nodes and objects that it has something to decide about."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from berth.objects.label_selector import InvalidSelectorError, is_qualified_name
from berth.out_of_tree.connections.event_interest import parse_selector
from berth_plugin_proto import identity_pb2

BUILT_IN_RESOURCES = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
MAX_KEYS = 16
LABELS, ANNOTATIONS = "/metadata/labels/", "/metadata/annotations/"


class Announced(msgspec.Struct, frozen=True):
    """What samples are made of: keys of labels and annotations, extended resources, pod fields."""

    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    pod_fields: tuple[str, ...] = ()


def announced(capabilities: identity_pb2.Capabilities, arguments: Any = None) -> Announced:
    """Return what these capabilities name, and what the given or default arguments do.

    An argument whose value could be a label's key is taken for one: plugins are often given a label's name.
    """
    pointers = [*capabilities.pod_fields.paths]
    for interest in capabilities.events:
        pointers += interest.changed_fields
    keys = [*_under(LABELS, pointers), *_selected(capabilities), *_named(capabilities, arguments)]
    return Announced(
        _distinct(keys),
        _distinct([*_under(ANNOTATIONS, pointers), *_named(capabilities, arguments)]),
        tuple(sorted(set(_resources(capabilities, pointers)) - BUILT_IN_RESOURCES)),
        tuple(capabilities.pod_fields.paths),
    )


def _distinct(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for key in keys if is_qualified_name(key)))[:MAX_KEYS]


def _under(parent: str, pointers: Iterable[str]) -> Iterator[str]:
    """Yield the last parts of the pointers right below `parent`, unescaped as RFC 6901 says."""
    for pointer in pointers:
        if pointer.startswith(parent):
            yield pointer.removeprefix(parent).split("/")[0].replace("~1", "/").replace("~0", "~")


def _selected(capabilities: identity_pb2.Capabilities) -> Iterator[str]:
    for interest in capabilities.events:
        yield from interest.equal_labels
        if interest.pod_label_names_object:
            yield interest.pod_label_names_object
        with suppress(InvalidSelectorError):
            yield from (each.key for each in parse_selector(interest.label_selector))


def _named(capabilities: identity_pb2.Capabilities, arguments: Any) -> Iterator[str]:
    """Yield the texts among the arguments: those given, else the schema's defaults."""
    try:
        properties = msgspec.json.decode(capabilities.arguments_schema or b"{}").get("properties", {})
        values = {name: each.get("default") for name, each in properties.items()}
    except (msgspec.DecodeError, AttributeError):
        values = {}
    values |= arguments if isinstance(arguments, dict) else {}
    yield from (each for each in values.values() if isinstance(each, str))


def _resources(capabilities: identity_pb2.Capabilities, pointers: Iterable[str]) -> Iterator[str]:
    yield from capabilities.state.pod_resources
    for interest in capabilities.events:
        yield from interest.pod_resources
    for parent in ("/status/allocatable/", "/status/capacity/"):
        yield from _under(parent, pointers)
    for place in ("requests", "limits"):
        yield from _under(f"/spec/containers/*/resources/{place}/", pointers)
