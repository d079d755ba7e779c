"""PostFilter of a plugin in shadow mode: called for a pod without a feasible node, its answer not applied.

Source: docs/protocol.md "Shadow"; docs/decisions/0016-shadow.md.
"""

from functools import partial

import msgspec
import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.status import Code, Status
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.packing import succeeded
from berth.out_of_tree.points.post_filter import MAX_REASONS, reason_of, room_of
from berth.out_of_tree.shadowing.comparison import ObservedChoice, ShadowOutcome, Verdict
from berth.out_of_tree.shadowing.opinion import ShadowOpinion
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import scheduling_pb2

BY_OTHERS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("turned down by another plugin",))
MAX_NAMED = 5


class RoomQuestion(msgspec.Struct, frozen=True):
    """The question about a pod without a feasible node in a generation, with the nodes' reasons."""

    caller: Caller
    nodes: Snapshot
    generation: int
    verdicts: scheduling_pb2.Verdicts

    async def ask(self, state: CycleState, pod: Pod) -> Verdict:
        """The node that it would nominate, and the victims. Raises: SidecarError."""
        caller, call = self.caller, self.caller.head(state, pod)
        if call.generation != self.generation:
            return ShadowOutcome.OUTDATED, ""
        request = scheduling_pb2.PostFilterRequest(call=call, verdicts=self.verdicts)
        return await caller.ask("PostFilter", request, state, partial(self._read, pod))

    def _read(self, pod: Pod, response: scheduling_pb2.PostFilterResponse) -> Verdict:
        feed = self.caller.feed
        feed.catch_up()
        if feed.generation != self.generation:
            return ShadowOutcome.OUTDATED, ""
        status, nominated, victims = room_of(self.caller.plugin, self.nodes, response)
        if not status.rejected:
            succeeded(self.caller.plugin, "PostFilter", status)
        if not nominated or (nominated == pod.nominated_node_name and not victims):
            return ShadowOutcome.SAME, ""
        return ShadowOutcome.ROOM, _described(nominated, sorted(victim.key for victim in victims))


def _described(node_name: str, victims: list[str]) -> str:
    if not victims:
        return f"nominates {node_name}"
    more = "" if len(victims) <= MAX_NAMED else f" and {len(victims) - MAX_NAMED} more"
    return f"nominates {node_name}, evicts {', '.join(victims[:MAX_NAMED])}{more}"


def turned_down(choice: ObservedChoice, opinion: ShadowOpinion, n: int) -> scheduling_pb2.Verdicts:
    """The nodes' reasons: the plugin's own for nodes that other plugins passed, theirs for the rest."""
    reasons = [reason_of(status) for status in opinion.reasons[: MAX_REASONS - 1]]
    codes = np.full(n, len(reasons) + 1, dtype=np.uint8)
    codes[choice.rows] = np.minimum(opinion.codes[choice.rows], len(reasons) + 1)
    return scheduling_pb2.Verdicts(each=codes.tobytes(), reasons=[*reasons, reason_of(BY_OTHERS)])
