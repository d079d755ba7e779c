"""Request bodies and replies of the extender protocol, as JSON.

Objects go into bodies as bytes and are never decoded here. Replies are read whatever the letter case of their
keys, as Go reads them.

Source: staging/src/k8s.io/kube-scheduler/extender/v1/types.go (v1.36).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from berth.out_of_tree.extender.errors import ReplyError
from berth.out_of_tree.plugin_text import bounded

T = TypeVar("T")

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_Object = dict[str, msgspec.Raw]
_encode = msgspec.json.encode


class FilterReply(msgspec.Struct, frozen=True):
    """A filter reply; `names` is None where it lists nodes in neither form."""

    names: list[str] | None = None
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    unresolvable: dict[str, str] = msgspec.field(default_factory=dict)


class VictimsReply(msgspec.Struct, frozen=True):
    """The pods that an extender wants evicted on one node, by UID."""

    uids: list[str]
    pdb_violations: int


class _HostPriority(msgspec.Struct):
    """An entry of a prioritize reply with its keys as they are usually written."""

    Host: str
    Score: Int64


def nodes_body(pod: bytes, *, nodes: Sequence[bytes] | None, names: Sequence[str] | None) -> bytes:
    """The body of a filter or prioritize call; the form of nodes that is not used is null."""
    if nodes is not None:
        listed = b'{"metadata":{},"items":[' + b",".join(nodes) + b"]}"
        return b'{"Pod":' + pod + b',"Nodes":' + listed + b',"NodeNames":null}'
    return b'{"Pod":' + pod + b',"Nodes":null,"NodeNames":' + _encode(names) + b"}"


def preempt_body(
    pod: bytes, victims: Mapping[str, tuple[Sequence[str], Sequence[bytes], int]], *, by_uid: bool
) -> bytes:
    """The body of a preempt call; of each node the victims' UIDs, their objects, and the violations."""
    full, meta = msgspec.Raw(b"null"), msgspec.Raw(b"null")
    if by_uid:
        meta = msgspec.Raw(
            _encode(
                {
                    name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
                    for name, (uids, _, violations) in victims.items()
                }
            )
        )
    else:
        full = msgspec.Raw(
            _encode(
                {
                    name: {"Pods": [msgspec.Raw(pod) for pod in pods], "NumPDBViolations": violations}
                    for name, (_, pods, violations) in victims.items()
                }
            )
        )
    body = {"Pod": msgspec.Raw(pod), "NodeNameToVictims": full, "NodeNameToMetaVictims": meta}
    return _encode(body)


def bind_body(name: str, namespace: str, uid: str, node: str) -> bytes:
    """The body of a bind call."""
    return _encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


def filter_reply(data: bytes, *, by_name: bool) -> FilterReply:
    """Read the reply to a filter call; `by_name` says that names come first.

    Raises: ReplyError with the extender's own error, or with what is wrong with the reply.
    """
    reply = _members(data)
    _refuse(reply)
    names = _read(reply, "nodenames", list[str] | None) if by_name else None
    if names is None:
        names = _names(reply)
    return FilterReply(
        names,
        _texts(reply, "failednodes"),
        _texts(reply, "failedandunresolvablenodes"),
    )


def _texts(reply: _Object, key: str) -> dict[str, str]:
    """Reasons by node name, bounded: they are written to pods' conditions."""
    found = _read(reply, key, dict[str, str] | None) or {}
    return {name: bounded(text) for name, text in found.items()}


def prioritize_reply(data: bytes) -> dict[str, int]:
    """Read the reply to a prioritize call: scores by node name, added up where a name comes twice.

    Raises: ReplyError.
    """
    scores: dict[str, int] = {}
    for host, score in _priorities(data):
        scores[host] = scores.get(host, 0) + score
    return {host: _as_int64(score) for host, score in scores.items()}


def _as_int64(number: int) -> int:
    """The sum as Go's int64 has it, which wraps around."""
    return (number + 2**63) % 2**64 - 2**63


def _priorities(data: bytes) -> list[tuple[str, int]]:
    try:
        exact = msgspec.json.decode(data, type=list[_HostPriority])
    except msgspec.ValidationError:
        entries = [_lowered(entry) for entry in _decode(data, list[_Object] | None) or ()]
        return [(_read(e, "host", str | None) or "", _read(e, "score", Int64 | None) or 0) for e in entries]
    except msgspec.DecodeError as error:
        raise ReplyError(f"reply cannot be read: {error}") from None
    return [(entry.Host, entry.Score) for entry in exact]


def preempt_reply(data: bytes) -> dict[str, VictimsReply]:
    """Read the reply to a preempt call.

    Raises: ReplyError.
    """
    nodes = _read(_members(data), "nodenametometavictims", _Object | None) or {}
    return {name: _victims(bytes(raw)) for name, raw in nodes.items()}


def bind_reply(data: bytes) -> None:
    """Read the reply to a bind call.

    Raises: ReplyError with the extender's own error, or with what is wrong with the reply.
    """
    _refuse(_members(data))


def _victims(data: bytes) -> VictimsReply:
    members = _members(data)
    pods = _read(members, "pods", list[_Object] | None) or []
    uids = [_read(_lowered(pod), "uid", str | None) or "" for pod in pods]
    return VictimsReply(uids, _read(members, "numpdbviolations", Int64 | None) or 0)


def _names(reply: _Object) -> list[str] | None:
    """The names of whole nodes in a reply, None where there is no list of them."""
    nodes = reply.get("nodes")
    if nodes is None or bytes(nodes) == b"null":
        return None
    items = _read(_members(bytes(nodes)), "items", list[dict[str, Any]] | None) or []
    try:
        return [item["metadata"]["name"] for item in items]
    except (KeyError, TypeError):
        raise ReplyError("reply has a node without a name") from None


def _refuse(reply: _Object) -> None:
    error = _read(reply, "error", str | None)
    if error:
        raise ReplyError(error)


def _members(data: bytes) -> _Object:
    """An object's members by their keys in lower case; null has none."""
    return _lowered(_decode(data, _Object | None) or {})


def _lowered(members: _Object) -> _Object:
    return {key.lower(): value for key, value in members.items()}


def _read(members: _Object, key: str, kind: Any) -> Any:
    raw = members.get(key)
    return None if raw is None else _decode(bytes(raw), kind)


def _decode(data: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise ReplyError(f"reply cannot be read: {error}") from None
