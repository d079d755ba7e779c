"""Validation of a plugin's handshake.

All of it is used for as long as the connection lasts: fields of pods at every attempt,
conditions on events at every event, kinds in paths of the API server.

Source: docs/protocol.md "Order of calls", "Limits"; proto/berth/plugin/v1/identity.proto.
"""

import re
from collections.abc import Iterable, Iterator

from berth.out_of_tree.limits import (
    EVENT_PARTS,
    EVENTS,
    HANDSHAKE_BYTES,
    KINDS,
    POD_FIELDS,
    POINTS,
    RESOURCES,
    SELECTOR_LENGTH,
    VERSION_LENGTH,
)
from berth_plugin_proto import identity_pb2

READABLE_OF_CORE = frozenset(
    {
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "replicationcontrollers",
        "services",
    }
)
"""What schedulers read of the core group for their own plugins; secrets and config maps are not among it."""
_LABEL = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LONGEST_SUBDOMAIN = 253
_EVENT_KIND = re.compile(rf"Node|Pod|{_LABEL}\.{_LABEL}(\.{_SUBDOMAIN})?")
_VERSION = re.compile(rf"[!-~]{{0,{VERSION_LENGTH}}}")
# Printable ASCII without quotes and backslashes; "/" and "~" as RFC 6901 has them.
_POINTER = re.compile(r"(/([ !#-.0-\[\]-}]|~[01])*){1,16}")
_LONGEST_POINTER = 256
# A directory of sockets takes NAME.sock for a plugin.
_SOCKET = re.compile(r"(?!\.)(?!.*\.sock\Z)[A-Za-z0-9._-]{1,64}")
_LONGEST_NAME = 317
"""A resource or label: 253 bytes of prefix, "/", 63 bytes of name."""


def problems_of(answer: identity_pb2.HandshakeResponse) -> Iterator[str]:
    """What exceeds a limit in the handshake, or can't be parsed."""
    if (size := answer.ByteSize()) > HANDSHAKE_BYTES:
        yield f"its introduction has {size} bytes, at most {HANDSHAKE_BYTES} are read"
        return
    if not _VERSION.fullmatch(answer.version):
        yield f"its version is not at most {VERSION_LENGTH} printable characters: {answer.version[:32]!r}"
    wants = answer.capabilities
    counts = (
        ("extension points", len(wants.extension_points), POINTS),
        ("deadlines", len(wants.wanted_deadlines), POINTS),
        ("event interests", len(wants.events), EVENTS),
        ("pod fields", len(wants.pod_fields.paths), POD_FIELDS),
        ("pod resources", len(wants.state.pod_resources), RESOURCES),
        ("kinds to watch", len(wants.state.resources), KINDS),
    )
    if too_many := [
        f"{count} {what}, at most {most} are read" for what, count, most in counts if count > most
    ]:
        yield from too_many
        return
    if wants.HasField("ttrpc_socket") and not _SOCKET.fullmatch(wants.ttrpc_socket):
        yield f"its ttrpc socket is not the name of a file beside the first one: {wants.ttrpc_socket[:64]!r}"
    yield from _pointers("pod field", wants.pod_fields.paths)
    yield from _names("pod resource", wants.state.pod_resources)
    for kind in wants.state.resources:
        yield from kind_problems(kind)
    for interest in wants.events:
        yield from _of_interest(interest)


def kind_problems(kind: identity_pb2.WatchedResource) -> Iterator[str]:
    """Why that kind can't be watched: it becomes a path of the API server."""
    shown = ".".join(part[:_LONGEST_SUBDOMAIN] for part in (kind.resource, kind.version, kind.group) if part)
    named = (
        re.fullmatch(_LABEL, kind.resource)
        and re.fullmatch(_LABEL, kind.version)
        and (not kind.group or re.fullmatch(_SUBDOMAIN, kind.group))
        and len(kind.group) <= _LONGEST_SUBDOMAIN
    )
    if not named:
        yield f"it wants to see {shown!r}, which is not plural.version.group in DNS names"
    elif not kind.group and kind.resource not in READABLE_OF_CORE:
        readable = ", ".join(sorted(READABLE_OF_CORE))
        yield f"it wants to see {shown}; of the core group plugins see {readable}"
    if len(kind.label_selector) > SELECTOR_LENGTH:
        yield f"its selector of {shown} is longer than {SELECTOR_LENGTH} characters"


def _of_interest(interest: identity_pb2.EventInterest) -> Iterator[str]:
    resource = interest.resource
    if len(resource) > 2 * _LONGEST_SUBDOMAIN or not _EVENT_KIND.fullmatch(resource):
        yield f"an event's kind is neither Node, Pod nor plural.version.group: {resource[:64]!r}"
        return
    lists = (interest.actions, interest.changed_fields, interest.pod_resources, interest.equal_labels)
    if any(len(parts) > EVENT_PARTS for parts in lists):
        yield f"an event of {resource} has more than {EVENT_PARTS} actions, fields, resources or labels"
        return
    if len(interest.label_selector) > SELECTOR_LENGTH:
        yield f"its selector of events of {resource} is longer than {SELECTOR_LENGTH} characters"
    yield from _pointers(f"field of {resource}", interest.changed_fields)
    label = interest.pod_label_names_object
    yield from _names(
        f"name in an event of {resource}", (*interest.pod_resources, *interest.equal_labels, label)
    )


def _pointers(what: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path and (len(path) > _LONGEST_POINTER or not _POINTER.fullmatch(path)):
            yield f"a {what} is no JSON pointer of at most {_LONGEST_POINTER} characters: {path[:64]!r}"


def _names(what: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if len(name) > _LONGEST_NAME:
            yield f"a {what} is longer than {_LONGEST_NAME} characters: {name[:64]!r}"
