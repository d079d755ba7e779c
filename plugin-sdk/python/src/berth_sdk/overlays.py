"""FilterOverlays: pods removed from and added to the mirror, the author's filter asked, all restored.

Columns of the author's own follow, since each change goes through the state hooks. A plugin that looks at one
node at a time is asked once for as many overlays as there are different nodes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from berth_plugin_proto import scheduling_pb2 as pb
from berth_sdk.errors import ContractError
from berth_sdk.nodes import Nodes
from berth_sdk.objects import Pod
from berth_sdk.outcomes import Code, Reason, Verdicts, status_of
from berth_sdk.packing import pack_status, pack_verdicts
from berth_sdk.scheduling import ask, failure, node_verdicts
from berth_sdk.session import Session
from berth_sdk.state import Mirror, PlacedPod, placed_pod


async def filter_overlays(session: Session, request: pb.FilterOverlaysRequest) -> pb.FilterOverlaysResponse:
    """Answer for the pod, then for each overlay's node."""
    await session.catch_up(request.call)
    pod, plugin = session.pod(request.call.pod), session.plugin
    count = len(session.nodes(request.call))
    wrong = [overlay.node_index for overlay in request.overlays if overlay.node_index >= count]
    if wrong:
        raise ValueError(f"overlay of node {wrong[0]}, of {count}")
    response = pb.FilterOverlaysResponse(generation=session.mirror.generation)
    try:
        status = status_of(await ask(plugin.pre_filter, pod))
        response.status.CopyFrom(pack_status(status))
        if status.code is Code.SUCCESS:
            verdicts = await _verdicts(session, pod, list(request.overlays))
            response.verdicts.CopyFrom(pack_verdicts(verdicts, None))
    except ContractError as error:
        response.status.CopyFrom(failure(plugin, "filter", error))
    return response


async def _verdicts(session: Session, pod: Pod, overlays: list[pb.Overlay]) -> Verdicts:
    codes = np.zeros(len(overlays), np.uint8)
    table: dict[Reason, int] = {}
    for group in _together(overlays, node_local=session.plugin.node_local):
        rows = [overlays[i].node_index for i in group]
        listed = np.array(sorted(rows), np.uint32)
        with _shown(session.mirror, [overlays[i] for i in group]):
            found = await node_verdicts(session.plugin, pod, Nodes(session.mirror, listed=listed))
        by_row = dict(zip(listed.tolist(), found.codes.tolist(), strict=True))
        for i, row in zip(group, rows, strict=True):
            code = by_row[row]
            if code > len(found.reasons):
                raise ContractError(f"code {code} has no reason: there are {len(found.reasons)}")
            codes[i] = table.setdefault(found.reasons[code - 1], len(table) + 1) if code else 0
    return Verdicts(codes, tuple(table))


def _together(overlays: list[pb.Overlay], *, node_local: bool) -> list[list[int]]:
    """Which overlays can be shown at once: one by one, unless no node's verdict depends on another."""
    if not node_local:
        return [[i] for i in range(len(overlays))]
    groups: list[list[int]] = []
    seen: dict[int, int] = {}
    for i, overlay in enumerate(overlays):
        turn = seen.get(overlay.node_index, 0)
        seen[overlay.node_index] = turn + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(i)
    return groups


@contextmanager
def _shown(mirror: Mirror, overlays: list[pb.Overlay]) -> Iterator[None]:
    """The mirror as the overlays have it, for as long as the block lasts; it must not await anything else."""
    removed: list[PlacedPod] = []
    added: list[str] = []
    try:
        for overlay in overlays:
            name = mirror.nodes[overlay.node_index].name
            for uid in overlay.removed_pod_uids:
                placed = mirror.think_away(uid)
                if placed is not None:
                    removed.append(placed)
            for upsert in overlay.added_pods:
                before = mirror.think_away(upsert.uid)
                if before is not None:
                    removed.append(before)
                mirror.think_there(placed_pod(upsert, mirror.known, name))
                added.append(upsert.uid)
        yield
    finally:
        for uid in added:
            mirror.think_away(uid)
        for placed in removed:
            mirror.think_there(placed)
