"""PostFilter of a sidecar.

It nominates a node and names victims, on that node and on others, which are evicted as in preemption.

Source: docs/protocol.md.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import NominatingInfo, NominatingMode, PostFilterPlugin, PostFilterResult
from berth.framework.preempting import PreemptionRequest
from berth.framework.status import Code, Status, failed, unschedulable
from berth.objects.pods.pod import Pod
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.packing import status_of
from berth.out_of_tree.points.sidecar_point import SidecarPoint
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2

POST_FILTER = identity_pb2.EXTENSION_POINT_POST_FILTER
MAX_REASONS = 255
OTHER = Status(Code.UNSCHEDULABLE, ("another reason",))
NOT_SERVED = unschedulable()


class PostFilterPoint(SidecarPoint, PostFilterPlugin):
    """PostFilter."""

    async def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> PostFilterResult:
        """Call the plugin; nominate its node, and evict its victims."""
        caller = self._answers(state).caller
        if not self._offers(caller, POST_FILTER):
            return PostFilterResult(NOT_SERVED)
        request = scheduling_pb2.PostFilterRequest(call=caller.head(state, pod), verdicts=packed(diagnosis))
        try:
            read = partial(room_of, caller.plugin, self._handle.snapshot)
            status, nominated, victims = await caller.ask("PostFilter", request, state, read)
        except SidecarError as error:
            if self._ignored(state, ExtensionPoint.POST_FILTER, pod, error):
                return PostFilterResult(unschedulable(str(error)))
            return PostFilterResult(failed(error))
        if status.ok and victims:
            assert nominated is not None, "victims come with a node"
            return await self._evict(PreemptionRequest(self.name, pod, state, diagnosis), nominated, victims)
        return PostFilterResult(status, _nominating(nominated))

    async def _evict(
        self, request: PreemptionRequest, node_name: str, victims: list[Pod]
    ) -> PostFilterResult:
        preemption = self._handle.preemption
        if preemption is None:
            return PostFilterResult(failed(f"plugin {self.name}: this host cannot evict pods"))
        preemption.attempted()
        return await preemption.evict(request, node_name, victims)


def room_of(
    plugin: str, nodes: Snapshot, response: scheduling_pb2.PostFilterResponse
) -> tuple[Status, str | None, list[Pod]]:
    """The response's status, nominated node, and victims. Raises: ProtocolError."""
    status = status_of(plugin, response.status)
    nominated = response.nominated_node_name if response.HasField("nominated_node_name") else None
    row = nodes.row_of.get(nominated) if nominated else None
    if nominated and row is None:
        raise ProtocolError(plugin, f"PostFilter nominates node {nominated}, which is not there")
    if not response.victim_uids:
        return status, nominated, []
    if not status.ok or row is None:
        raise ProtocolError(plugin, "PostFilter names victims without success and a node")
    return status, nominated, _victims(plugin, response.victim_uids, nodes, row)


def _victims(plugin: str, uids: Sequence[str], nodes: Snapshot, row: int) -> list[Pod]:
    """The victims' pods; each must be on a node, and named once. Cost: O(nodes) where one is on another node.

    Raises: ProtocolError.
    """
    named: set[str] = set()
    for uid in uids:
        if uid in named:
            raise ProtocolError(plugin, f"PostFilter names {uid} as a victim twice")
        named.add(uid)
    found = {uid: nodes.pods[row][uid].pod for uid in uids if uid in nodes.pods[row]}
    if len(found) < len(named):
        for pods in nodes.pods:
            found.update((uid, pods[uid].pod) for uid in named & pods.keys())
    for uid in uids:
        if uid not in found:
            raise ProtocolError(plugin, f"PostFilter names {uid} as a victim, which is on no node")
    return [found[uid] for uid in uids]


def _nominating(node_name: str | None) -> NominatingInfo | None:
    return None if node_name is None else NominatingInfo(NominatingMode.OVERRIDE, node_name)


def packed(diagnosis: Diagnosis) -> scheduling_pb2.Verdicts:
    """The reason each node was rejected for, as a table of reasons and a byte for each node."""
    table: dict[Status, int] = {}
    codes = np.zeros(len(diagnosis.node_names), dtype=np.uint8)
    absent = diagnosis.absent if diagnosis.absent.reasons else None
    if absent is not None:
        codes[:] = _number(table, absent)
    for rejections in diagnosis.rejections:
        for code in np.unique(rejections.codes):
            here = rejections.rows[rejections.codes == code]
            codes[here] = _number(table, rejections.spell(int(code)))
    for row, status in diagnosis.single.items():
        codes[row] = _number(table, status)
    return scheduling_pb2.Verdicts(each=codes.tobytes(), reasons=[reason_of(status) for status in table])


def _number(table: dict[Status, int], status: Status) -> int:
    """The status's number; those beyond the last number share it."""
    key = Status(status.code, status.reasons)
    if key not in table and len(table) >= MAX_REASONS - 1:
        key = OTHER
    return table.setdefault(key, len(table) + 1)


def reason_of(status: Status) -> common_pb2.Reason:
    """The reason a node was rejected for, and whether preemption may help there."""
    resolvable = status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    code = common_pb2.CODE_UNSCHEDULABLE if resolvable else common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
    return common_pb2.Reason(code=code, text="; ".join(status.reasons) or str(status.code))
