"""The deadline of a call: the entry's or the plugin's timeout, at most the rest of the cycle's time.

Source: docs/protocol.md "Transport".
"""

import asyncio

import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.attempts.cycle_state import CycleState
from berth_plugin_proto import identity_pb2

DEFAULT_SECONDS = 1.0
LONGEST_SECONDS = 10.0
CYCLE_SECONDS = 10.0
BINDING_SECONDS = 30.0
"""What one scheduling cycle, and then its binding cycle, may spend on sidecars."""

_BINDING = frozenset({"Reserve", "Permit", "PreBind", "Bind"})
_NOT_OF_THE_CYCLE = frozenset({"PreEnqueue", "Unreserve", "PostBind", "CycleDone"})
_POINTS = {
    "PreEnqueue": identity_pb2.EXTENSION_POINT_PRE_ENQUEUE,
    "Filter": identity_pb2.EXTENSION_POINT_FILTER,
    "FilterScore": identity_pb2.EXTENSION_POINT_FILTER,
    "FilterOverlays": identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS,
    "PostFilter": identity_pb2.EXTENSION_POINT_POST_FILTER,
    "Score": identity_pb2.EXTENSION_POINT_SCORE,
    "Reserve": identity_pb2.EXTENSION_POINT_RESERVE,
    "Unreserve": identity_pb2.EXTENSION_POINT_RESERVE,
    "Permit": identity_pb2.EXTENSION_POINT_PERMIT,
    "PreBind": identity_pb2.EXTENSION_POINT_PRE_BIND,
    "Bind": identity_pb2.EXTENSION_POINT_BIND,
    "PostBind": identity_pb2.EXTENSION_POINT_POST_BIND,
    "CycleDone": identity_pb2.EXTENSION_POINT_CYCLE_DONE,
    "QueueingHints": identity_pb2.EXTENSION_POINT_QUEUEING_HINTS,
    "SortKeys": identity_pb2.EXTENSION_POINT_QUEUE_SORT,
    "GeneratePlacements": identity_pb2.EXTENSION_POINT_PLACEMENT_GENERATE,
    "ScorePlacements": identity_pb2.EXTENSION_POINT_PLACEMENT_SCORE,
    "PlacementFeasible": identity_pb2.EXTENSION_POINT_PLACEMENT_FEASIBLE,
    "PodGroupPostFilter": identity_pb2.EXTENSION_POINT_POD_GROUP_POST_FILTER,
}


class _Deadline(msgspec.Struct, frozen=True):
    """The end of the cycle's time, by the event loop's clock."""

    at: float


def wanted_seconds(spec: SidecarSpec, wishes: identity_pb2.Capabilities, method: str) -> float:
    """A call's own timeout: the entry's, else the plugin's within bounds."""
    if spec.timeout is not None:
        return spec.timeout.seconds
    point = _POINTS.get(method)
    wish = next((each.deadline for each in wishes.wanted_deadlines if each.extension_point == point), None)
    chosen = wishes.wanted_deadline if wish is None else wish
    seconds: float = chosen.seconds + chosen.nanos / 1e9
    return min(seconds, LONGEST_SECONDS) if seconds > 0 else DEFAULT_SECONDS


def seconds_left(state: CycleState, method: str) -> float:
    """The rest of the cycle's time; it begins with the cycle's first call."""
    if method in _NOT_OF_THE_CYCLE:
        return LONGEST_SECONDS
    binding = method in _BINDING
    key = (_Deadline, binding)
    now = asyncio.get_running_loop().time()
    deadline: _Deadline | None = state.get(key)
    if deadline is None:
        deadline = _Deadline(now + (BINDING_SECONDS if binding else CYCLE_SECONDS))
        state.write(key, deadline)
    return deadline.at - now
