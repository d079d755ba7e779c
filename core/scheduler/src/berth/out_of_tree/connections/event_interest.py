"""The cluster events that a plugin declared as useful, evaluated in the scheduler.

The conditions on an event are evaluated once for all pods that wait; only the conditions that relate the
pod and the object are evaluated by pod. A condition that the scheduler cannot evaluate counts as met.

Source: proto/berth/plugin/v1/identity.proto EventInterest; KEP-4247.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from berth.framework.cluster_event import ActionType
from berth.framework.queueing.object_events import node_events, pod_events
from berth.objects.api_object import TypedObject
from berth.objects.label_selector import InvalidSelectorError, Requirement
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import accounted_requests
from berth_plugin_proto import identity_pb2

ACTIONS: Mapping[int, ActionType] = {
    identity_pb2.ACTION_TYPE_ADD: ActionType.ADD,
    identity_pb2.ACTION_TYPE_DELETE: ActionType.DELETE,
    identity_pb2.ACTION_TYPE_UPDATE: ActionType.UPDATE,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_ALLOCATABLE: ActionType.UPDATE_NODE_ALLOCATABLE,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_LABEL: ActionType.UPDATE_NODE_LABEL,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_TAINT: ActionType.UPDATE_NODE_TAINT,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_CONDITION: ActionType.UPDATE_NODE_CONDITION,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_ANNOTATION: ActionType.UPDATE_NODE_ANNOTATION,
    identity_pb2.ACTION_TYPE_UPDATE_NODE_DECLARED_FEATURE: ActionType.UPDATE_NODE_DECLARED_FEATURE,
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

UNKNOWN = object()
"""A field that decoded objects leave out."""

_TERM = re.compile(r"\s*([^\s!=(),]+)\s+(in|notin)\s*\(([^()]*)\)\s*\Z")
_COMMA = re.compile(r",(?![^(]*\))")

Bytes = Callable[[Any], bytes]
"""The API server's JSON of an object as the watch brought it; empty where it is not kept any more."""


class Interest(msgspec.Struct, frozen=True):
    """A compiled EventInterest."""

    resource: str
    actions: ActionType
    changed_fields: tuple[str, ...]
    requirements: tuple[Requirement, ...]
    pod_resources: tuple[str, ...]
    asks: bool
    same_namespace: bool
    equal_labels: tuple[str, ...]
    naming_label: str

    @property
    def distinguishes_pods(self) -> bool:
        """Whether it also depends on the waiting pod."""
        return self.same_namespace or bool(self.equal_labels or self.naming_label)

    def covers(self, actions: ActionType, old: Any, new: Any, data: Bytes) -> bool:
        """Whether the object's change (see `actions_of_change`) meets the conditions that any pod shares."""
        obj = new if new is not None else old
        return (
            bool(self.actions & actions)
            and all(requirement.matches(obj.labels) for requirement in self.requirements)
            and self._requests(obj)
            and self._changed(old, new, data)
        )

    def concerns(self, pod: Pod, obj: TypedObject) -> bool:
        """Whether the object and the waiting pod meet the conditions that relate them."""
        if self.same_namespace and obj.namespace != pod.namespace:
            return False
        if self.naming_label and pod.labels.get(self.naming_label) != obj.name:
            return False
        return all(key in pod.labels and pod.labels[key] == obj.labels.get(key) for key in self.equal_labels)

    def _requests(self, obj: TypedObject) -> bool:
        if not self.pod_resources or not isinstance(obj, Pod):
            return True
        requested = accounted_requests(obj)
        return any(requested.get(name) for name in self.pod_resources)

    def _changed(self, old: Any, new: Any, data: Bytes) -> bool:
        """Whether one of the named fields changed."""
        if not self.changed_fields or old is None or new is None:
            return True
        return any(_differs(pointer, old, new, data) for pointer in self.changed_fields)


def compiled(interests: Iterable[identity_pb2.EventInterest]) -> tuple[Interest, ...]:
    """Compile an EventInterest; an invalid selector selects everything."""
    return tuple(_compile(interest) for interest in interests)


def _compile(declared: identity_pb2.EventInterest) -> Interest:
    actions = ActionType.NONE
    for action in declared.actions:
        actions |= ACTIONS.get(action, ActionType.NONE)
    try:
        requirements = tuple(parse_selector(declared.label_selector))
    except InvalidSelectorError:
        requirements = ()
    return Interest(
        declared.resource,
        actions,
        tuple(declared.changed_fields),
        requirements,
        tuple(declared.pod_resources),
        declared.ask_hint,
        declared.same_namespace,
        tuple(declared.equal_labels),
        declared.pod_label_names_object,
    )


def actions_of_change(old: Any, new: Any, *, resizes_count_by_pod: bool = False) -> ActionType:
    """The actions that lead from the old object to the new one.

    ADD without an old one, DELETE without a new one; of kinds other than nodes and pods, UPDATE otherwise.

    `resizes_count_by_pod` is the rule of the release (berth.config.releases).
    """
    if old is None:
        return ActionType.ADD
    if new is None:
        return ActionType.DELETE
    if not isinstance(new, Node | Pod):
        return ActionType.UPDATE
    if isinstance(new, Node):
        events = node_events(old, new)
    else:
        events = pod_events(old, new, resizes_count_by_pod=resizes_count_by_pod)
    actions = ActionType.NONE
    for event in events:
        actions |= event.action
    return actions


def parse_selector(text: str) -> list[Requirement]:
    """The requirements of a label selector in its text form, as in `tier in (gpu, fpga),!spare`.

    Raises: InvalidSelectorError.
    """
    pieces = (piece.strip() for piece in _COMMA.split(text))
    return [_requirement(piece) for piece in pieces if piece]


def _requirement(text: str) -> Requirement:
    if match := _TERM.match(text):
        key, operator, values = match.groups()
        names = tuple(value.strip() for value in values.split(","))
        return Requirement(key, "In" if operator == "in" else "NotIn", names)
    if any(mark in text for mark in ("(", " ", ">", "<")):
        raise InvalidSelectorError(f"{text!r}: write key=value, key!=value, key in (a,b), key or !key")
    if "!=" in text:
        key, _, value = text.partition("!=")
        return Requirement(key, "NotIn", (value,))
    if "=" in text:
        key, _, value = text.partition("=")
        return Requirement(key, "In", (value.removeprefix("="),))
    if text.startswith("!"):
        return Requirement(text[1:], "DoesNotExist")
    return Requirement(text, "Exists")


def _differs(pointer: str, old: Any, new: Any, data: Bytes) -> bool:
    before, after = _at(old, pointer), _at(new, pointer)
    if before is not UNKNOWN and after is not UNKNOWN:
        return bool(before != after)
    versions = data(old), data(new)
    if not all(versions):
        return True
    try:
        first, second = (_at(msgspec.json.decode(version), pointer) for version in versions)
    except msgspec.DecodeError:  # A number that is too large to decode, in a field that is not read.
        return True
    return bool(first != second)


def _at(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901); None if absent, UNKNOWN for a field that is not kept."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, msgspec.Struct):
            names = {field.encode_name: field.name for field in msgspec.structs.fields(value)}
            value = getattr(value, names[key]) if key in names else UNKNOWN
        elif isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None if value is None or isinstance(value, list | tuple | str | int | float) else UNKNOWN
    return value
