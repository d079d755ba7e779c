"""What plugin functions return, and the few words of the protocol that authors meet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2, state_pb2
from berth_sdk.errors import ContractError
from berth_sdk.objects import Node, Object, Pod, decode_node, decode_pod

Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.bool_]
Points: TypeAlias = NDArray[np.integer]


class Code(IntEnum):
    """The outcome of an extension point, in kube-scheduler's words."""

    SUCCESS = common_pb2.CODE_SUCCESS
    ERROR = common_pb2.CODE_ERROR
    UNSCHEDULABLE = common_pb2.CODE_UNSCHEDULABLE
    UNSCHEDULABLE_AND_UNRESOLVABLE = common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
    WAIT = common_pb2.CODE_WAIT
    SKIP = common_pb2.CODE_SKIP
    PENDING = common_pb2.CODE_PENDING


class Normalization(IntEnum):
    """How the scheduler maps raw scores over the nodes that are left to 0 to 100."""

    NONE = scheduling_pb2.NORMALIZATION_NONE
    MAX = scheduling_pb2.NORMALIZATION_MAX
    MAX_REVERSE = scheduling_pb2.NORMALIZATION_MAX_REVERSE
    MIN_MAX = scheduling_pb2.NORMALIZATION_MIN_MAX


class PodStage(IntEnum):
    """Why a pod counts on a node."""

    ASSUMED = state_pb2.POD_STAGE_ASSUMED
    PLACED = state_pb2.POD_STAGE_PLACED
    NOMINATED = state_pb2.POD_STAGE_NOMINATED


class CycleOutcome(IntEnum):
    """How a scheduling attempt ended."""

    BOUND = scheduling_pb2.CYCLE_OUTCOME_BOUND
    UNSCHEDULABLE = scheduling_pb2.CYCLE_OUTCOME_UNSCHEDULABLE
    FAILED = scheduling_pb2.CYCLE_OUTCOME_FAILED
    ABORTED = scheduling_pb2.CYCLE_OUTCOME_ABORTED


class Action(IntEnum):
    """What happened to an object."""

    ADD = identity_pb2.ACTION_TYPE_ADD
    DELETE = identity_pb2.ACTION_TYPE_DELETE
    UPDATE = identity_pb2.ACTION_TYPE_UPDATE
    UPDATE_NODE_ALLOCATABLE = identity_pb2.ACTION_TYPE_UPDATE_NODE_ALLOCATABLE
    UPDATE_NODE_LABEL = identity_pb2.ACTION_TYPE_UPDATE_NODE_LABEL
    UPDATE_NODE_TAINT = identity_pb2.ACTION_TYPE_UPDATE_NODE_TAINT
    UPDATE_NODE_CONDITION = identity_pb2.ACTION_TYPE_UPDATE_NODE_CONDITION
    UPDATE_NODE_DECLARED_FEATURE = identity_pb2.ACTION_TYPE_UPDATE_NODE_DECLARED_FEATURE
    UPDATE_NODE_ANNOTATION = identity_pb2.ACTION_TYPE_UPDATE_NODE_ANNOTATION
    UPDATE_POD_LABEL = identity_pb2.ACTION_TYPE_UPDATE_POD_LABEL
    UPDATE_POD_SCALE_DOWN = identity_pb2.ACTION_TYPE_UPDATE_POD_SCALE_DOWN
    UPDATE_POD_TOLERATION = identity_pb2.ACTION_TYPE_UPDATE_POD_TOLERATION
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = identity_pb2.ACTION_TYPE_UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = identity_pb2.ACTION_TYPE_UPDATE_POD_GENERATED_RESOURCE_CLAIM


REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE})


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node is turned down; equal for all the nodes it applies to."""

    text: str
    code: Code = Code.UNSCHEDULABLE

    def __post_init__(self) -> None:
        if self.code not in REJECTIONS or not self.text:
            raise ContractError(f"a reason needs a text and an unschedulable code: {self!r}")


@dataclass(frozen=True, slots=True)
class Status:
    """A verdict on the pod as a whole."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()


SUCCESS = Status()
SKIP = Status(Code.SKIP)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Reason codes for all nodes with a table of this answer's own; 0 passes, k is reasons[k - 1].

    Shapes: codes uint8 (n,).
    """

    codes: NDArray[np.uint8]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores for all nodes with a normalization of this answer's own.

    Shapes: points integers (n,).
    """

    points: Points
    normalization: Normalization


@dataclass(frozen=True, slots=True)
class Wait:
    """Permit's answer that keeps the pod waiting."""

    seconds: float


@dataclass(frozen=True, slots=True)
class MetadataPatch:
    """PreBind's wish: what the scheduler writes to the pod before it binds; None removes a key."""

    annotations: Mapping[str, str | None] = field(default_factory=dict)
    labels: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Nomination:
    """PostFilter's answer: the node where room is made, and the pods that have to go first.

    An empty name takes back what the pod was promised.
    """

    node_name: str
    victim_uids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodKey:
    """One attempt at one pod; what is held for a pod is held under (uid, attempt)."""

    uid: str
    attempt: int
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A pod group, and its pods that have no node; those that have one are among the nodes' pods."""

    namespace: str
    name: str
    pods: tuple[PodKey, ...] = ()


class PlacementProgress(NamedTuple):
    """How far an attempt at a group has come: its pods that are still to be tried, and those with a node."""

    remaining: int
    scheduled: int


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """Pods, by UID, without which a pod group may fit."""

    victim_uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProposedPlacement:
    """A placement in which a group fits, and the index of the node that each pod would go to.

    Shapes: nodes bool (n,).
    """

    name: str
    nodes: NDArray[np.bool_]
    assignments: tuple[tuple[PodKey, int], ...]


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened to an object; old and new are its JSON, None where there is none."""

    resource: str
    action: Action
    old: bytes | None = None
    new: bytes | None = None

    def nodes(self) -> tuple[Node | None, Node | None]:
        """Return the object as a node, before and after.

        Raises: msgspec.ValidationError, msgspec.DecodeError: it is no node.
        """
        return _maybe(decode_node, self.old), _maybe(decode_node, self.new)

    def pods(self) -> tuple[Pod | None, Pod | None]:
        """Return the object as a pod, before and after.

        Raises: msgspec.ValidationError, msgspec.DecodeError: it is no pod.
        """
        return _maybe(decode_pod, self.old), _maybe(decode_pod, self.new)


def _maybe(decode: Callable[[bytes], Object], source: bytes | None) -> Object | None:
    return None if source is None else decode(source)


SortKey: TypeAlias = tuple[int, ...]
"""At most 8 numbers, compared in order, the lowest first; missing ones count as 0."""
Placements: TypeAlias = Mapping[str, NDArray[np.bool_]]
"""Sets of nodes by name, in the order in which they are tried. Shapes: each bool (n,)."""
Answer: TypeAlias = Status | Reason | str | None
"""None lets the pod or node pass, a string or Reason turns it down, a Status says it in full."""


def status_of(answer: object) -> Status:
    """Return the answer in full.

    Raises: ContractError: it is none.
    """
    match answer:
        case None:
            return SUCCESS
        case Status():
            return answer
        case Reason(text, code):
            return Status(code, (text,))
        case str() if answer:
            return Status(Code.UNSCHEDULABLE, (answer,))
    raise ContractError(f"expected None, a text, a Reason or a Status, got {answer!r}")
