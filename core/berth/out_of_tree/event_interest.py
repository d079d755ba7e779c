"""Queueing hints of a plugin in another process: what it declared, evaluated here.

Until a plugin has introduced itself its pods are queued at every event: an attempt too many is harmless, a
pod left lying is not. Events that the plugin wants to be asked about one by one count as worth an attempt.

Source: proto/berth/plugin/v1/identity.proto EventInterest; KEP-4247.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from berth.framework.cluster_event import ActionType, EventResource, QueueingHint, QueueingHintFn
from berth.framework.object_events import node_events, pod_events
from berth.objects.api_object import TypedObject
from berth.objects.label_selector import InvalidSelectorError, Requirement
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.objects.pod_requests import accounted_requests
from berth.out_of_tree._generated import identity_pb2
from berth.out_of_tree.connection import Connection

_ACTIONS = {
    identity_pb2.ACTION_TYPE_ADD: ActionType.ADD,
    identity_pb2.ACTION_TYPE_DELETE: ActionType.DELETE,
    identity_pb2.ACTION_TYPE_UPDATE: ActionType.UPDATE,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_ALLOCATABLE: ActionType.UPDATE_NODE_ALLOCATABLE,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_LABEL: ActionType.UPDATE_NODE_LABEL,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_TAINT: ActionType.UPDATE_NODE_TAINT,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_CONDITION: ActionType.UPDATE_NODE_CONDITION,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_ANNOTATION: ActionType.UPDATE_NODE_ANNOTATION,
    identity_pb2.ACTION_TYPE_UPDATE_POD_LABEL: ActionType.UPDATE_POD_LABEL,
    identity_pb2.ACTION_TYPE_UPDATE_POD_SCALE_DOWN: ActionType.UPDATE_POD_SCALE_DOWN,
    identity_pb2.ACTION_TYPE_UPDATE_POD_SCHEDULING_GATES_ELIMINATED: (
        ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    ),
    identity_pb2.ACTION_TYPE_UPDATE_POD_TOLERATION: ActionType.UPDATE_POD_TOLERATION,
    identity_pb2.ACTION_TYPE_UPDATE_POD_GENERATED_RESOURCE_CLAIM: (
        ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    ),
}


UNTOLD = object()
"""A field that decoded objects leave out."""


def hints_for(resource: EventResource, connection: Connection) -> QueueingHintFn:
    """The hint function for events of that resource."""

    def hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
        if not connection.starts or (new is not None and new.uid == pod.uid):
            return QueueingHint.QUEUE
        interests = [e for e in connection.capabilities.events if e.resource == resource.value]
        wanted = any(_interested(interest, old, new) for interest in interests)
        return QueueingHint.QUEUE if wanted else QueueingHint.SKIP

    return hint


def _interested(interest: identity_pb2.EventInterest, old: Any, new: Any) -> bool:
    actions = ActionType.NONE
    for action in interest.actions:
        actions |= _ACTIONS.get(action, ActionType.NONE)
    if not actions & _happened(old, new):
        return False
    obj = new if new is not None else old
    return (
        _selected(interest, obj)
        and _requests(interest, obj)
        and _changed(list(interest.changed_fields), old, new)
    )


def _happened(old: Any, new: Any) -> ActionType:
    if old is None:
        return ActionType.ADD
    if new is None:
        return ActionType.DELETE
    events = node_events(old, new) if isinstance(new, Node) else pod_events(old, new)
    happened = ActionType.NONE
    for event in events:
        happened |= event.action
    return happened


def _selected(interest: identity_pb2.EventInterest, obj: TypedObject) -> bool:
    if not interest.HasField("label_selector"):
        return True
    try:
        return all(r.matches(obj.labels) for r in parse_selector(interest.label_selector))
    except InvalidSelectorError:
        return True


def parse_selector(text: str) -> list[Requirement]:
    """The requirements of equalities and existences, as in `tier=gpu,!spare`.

    Raises: InvalidSelectorError for any other form.
    """
    requirements = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if any(mark in part for mark in ("(", " ", ">", "<")):
            raise InvalidSelectorError(f"{part!r}: write key=value, key!=value, key or !key")
        if "!=" in part:
            key, _, value = part.partition("!=")
            requirements.append(Requirement(key, "NotIn", (value,)))
        elif "=" in part:
            key, _, value = part.partition("=")
            requirements.append(Requirement(key, "In", (value.removeprefix("="),)))
        elif part.startswith("!"):
            requirements.append(Requirement(part[1:], "DoesNotExist"))
        else:
            requirements.append(Requirement(part, "Exists"))
    return requirements


def _requests(interest: identity_pb2.EventInterest, obj: TypedObject) -> bool:
    if not interest.pod_resources or not isinstance(obj, Pod):
        return True
    requested = accounted_requests(obj)
    return any(requested.get(name) for name in interest.pod_resources)


def _changed(pointers: list[str], old: Any, new: Any) -> bool:
    """Whether one of the fields changed; a field that scheduling does not decode may have."""
    if not pointers or old is None or new is None:
        return True
    for pointer in pointers:
        before, after = _at(old, pointer), _at(new, pointer)
        if before is UNTOLD or after is UNTOLD or before != after:
            return True
    return False


def _at(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) names, None where there is nothing, UNTOLD where that is not known."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, msgspec.Struct):
            names = {field.encode_name: field.name for field in msgspec.structs.fields(value)}
            value = getattr(value, names[key]) if key in names else UNTOLD
        elif isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None if value is None or isinstance(value, list | tuple) else UNTOLD
    return value
