"""Bodies and replies of the extender protocol.

Pods and nodes go out as the API server wrote them. Replies' keys count whatever their letter case, as in Go.

Source: k8s.io/kube-scheduler/extender/v1 (Kubernetes v1.36).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from berth_sdk import ContractError, Node, Pod, PodKey


class ExtenderError(ContractError):
    """The extender did not answer, or not as it should: the call fails with this text."""


class _Named(msgspec.Struct):
    name: str


class _Listed(msgspec.Struct):
    metadata: _Named


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which nodes pass, and why others don't."""

    passed: frozenset[str]
    failed: dict[str, str]
    unresolvable: dict[str, str]


def question(pod: Pod, nodes: Iterable[Node], *, names_only: bool) -> bytes:
    """Return the body of a filter or prioritize call."""
    if names_only:
        whole, names = b"null", msgspec.json.encode([node.name for node in nodes])
    else:
        whole, names = b'{"metadata":{},"items":[' + b",".join(node.source for node in nodes) + b"]}", b"null"
    return b'{"Pod":' + pod.source + b',"Nodes":' + whole + b',"NodeNames":' + names + b"}"


def binding(key: PodKey, node: Node) -> bytes:
    """Return the body of a bind call."""
    words = {"PodName": key.name, "PodNamespace": key.namespace, "PodUID": key.uid, "Node": node.name}
    return msgspec.json.encode(words)


def verdict(data: bytes, *, names_only: bool) -> Verdict:
    """Read the reply to a filter call; without names and nodes in it none passes.

    Raises: ExtenderError: the extender's own words, or what is wrong with the reply.
    """
    reply = accepted(data)
    names = _member(reply, "nodenames", list[str]) if names_only else None
    if names is None:
        nodes = _lowered(_member(reply, "nodes", dict[str, msgspec.Raw]))
        names = [node.metadata.name for node in _member(nodes, "items", list[_Listed]) or ()]
    reasons = dict[str, str]
    return Verdict(
        frozenset(names),
        _member(reply, "failednodes", reasons) or {},
        _member(reply, "failedandunresolvablenodes", reasons) or {},
    )


def priorities(data: bytes) -> dict[str, int]:
    """Read the reply to a prioritize call: scores by node, added up where a node comes twice.

    Raises: ExtenderError.
    """
    points: dict[str, int] = {}
    for each in _read(data, list[dict[str, msgspec.Raw]] | None) or ():
        entry = _lowered(each)
        host = _member(entry, "host", str) or ""
        points[host] = points.get(host, 0) + (_member(entry, "score", int) or 0)
    return points


def accepted(data: bytes) -> dict[str, msgspec.Raw]:
    """Read a reply's members, by their keys in lower case.

    Raises: ExtenderError: also if the reply is an error.
    """
    reply = _lowered(_read(data, dict[str, msgspec.Raw] | None))
    if error := _member(reply, "error", str):
        raise ExtenderError(error)
    return reply


def _lowered(members: dict[str, msgspec.Raw] | None) -> dict[str, msgspec.Raw]:
    return {key.lower(): value for key, value in (members or {}).items()}


def _member(members: dict[str, msgspec.Raw], key: str, kind: Any) -> Any:
    """Return a member, None if it is absent or null."""
    return _read(bytes(members[key]), kind | None) if key in members else None


def _read(data: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise ExtenderError(f"the extender's reply cannot be read: {error}") from error
