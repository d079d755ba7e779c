"""Filter requests about nodes with simulated pods: without preemption's victims, or with nominated pods.

All such nodes of a table are sent in as few calls as the message size allows.

Source: proto/berth/plugin/v1/scheduling.proto FilterOverlays.
"""

import asyncio
from collections.abc import Iterable
from functools import partial

import msgspec
import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.packing import ReasonBytes, status_of, succeeded, verdicts_of
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import scheduling_pb2, state_pb2

OVERLAYS_A_CALL = 1000
"""Some 40 bytes for each pod that is removed in it keep a call far below gRPC's 4 MiB."""


class OverlaidNode(msgspec.Struct, frozen=True):
    """A node, by its row of the snapshot, and the pods that a simulation adds and removes there."""

    node_index: int
    removed: tuple[str, ...]
    added: tuple[PodInfo, ...]


class OverlaidRows(msgspec.Struct, frozen=True):
    """The rows of a table with simulated pods. Shapes: rows intp (k,)."""

    rows: Rows
    nodes: tuple[OverlaidNode, ...]

    def __bool__(self) -> bool:
        return bool(self.nodes)


def differences(table: Snapshot, shown: Snapshot) -> OverlaidRows:
    """The rows where a table's pods differ from the snapshot's. Cost: O(pods of its rows)."""
    rows: list[int] = []
    nodes: list[OverlaidNode] = []
    for i, name in enumerate(table.names):
        index = shown.row_of[name]
        here, there = table.pods[i], shown.pods[index]
        if here is there or here.keys() == there.keys():
            continue
        removed = tuple(uid for uid in there if uid not in here)
        added = tuple(info for uid, info in here.items() if uid not in there)
        rows.append(i)
        nodes.append(OverlaidNode(index, removed, added))
    return OverlaidRows(np.array(rows, dtype=np.intp), tuple(nodes))


async def ask_overlays(
    caller: Caller, state: CycleState, pod: Pod, changed: OverlaidRows
) -> tuple[ReasonBytes, tuple[Status, ...]]:
    """A code for each overlay, and the statuses of the codes from 1 on.

    Shapes: codes (k,). Raises: SidecarError.
    """
    parts = [changed.nodes[i : i + OVERLAYS_A_CALL] for i in range(0, len(changed.nodes), OVERLAYS_A_CALL)]
    answers = await asyncio.gather(*(_ask(caller, state, pod, part) for part in parts))
    codes: list[ReasonBytes] = []
    reasons: tuple[Status, ...] = ()
    for part, table in answers:
        codes.append(np.where(part > 0, part.astype(np.uint16) + len(reasons), 0))
        reasons = (*reasons, *table)
    return np.concatenate(codes), reasons


async def _ask(
    caller: Caller, state: CycleState, pod: Pod, nodes: Iterable[OverlaidNode]
) -> tuple[ReasonBytes, tuple[Status, ...]]:
    overlays = [_overlay(caller, node) for node in nodes]
    request = scheduling_pb2.FilterOverlaysRequest(call=caller.head(state, pod), overlays=overlays)
    return await caller.ask("FilterOverlays", request, state, partial(_read, caller, request))


def _overlay(caller: Caller, node: OverlaidNode) -> scheduling_pb2.Overlay:
    added = [
        state_pb2.PodUpsert(
            uid=info.uid,
            node_name=info.pod.node_name,
            stage=state_pb2.POD_STAGE_PLACED if info.pod.node_name else state_pb2.POD_STAGE_NOMINATED,
            object=caller.around.pods.get(info.uid),
        )
        for info in node.added
    ]
    return scheduling_pb2.Overlay(node_index=node.node_index, removed_pod_uids=node.removed, added_pods=added)


def _read(
    caller: Caller,
    request: scheduling_pb2.FilterOverlaysRequest,
    response: scheduling_pb2.FilterOverlaysResponse,
) -> tuple[ReasonBytes, tuple[Status, ...]]:
    n = len(request.overlays)
    status = status_of(caller.plugin, response.status)
    caller.check_generation(request, response.generation)
    if status.rejected:
        return np.ones(n, dtype=np.uint8), (status,)
    if status.skip:
        return np.zeros(n, dtype=np.uint8), ()
    succeeded(caller.plugin, "FilterOverlays", status)
    if not response.HasField("verdicts"):
        raise ProtocolError(caller.plugin, "FilterOverlays says Success and gives no verdicts")
    return verdicts_of(caller.plugin, response.verdicts, n)
