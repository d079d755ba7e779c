"""PlacementFeasible and PodGroupPostFilter of a sidecar.

PlacementFeasible is called once for the whole attempt, on the assumption that every pod finds a node, and
once more where one does not. PodGroupPostFilter proposes victims, and whether the group fits without them is
tried here: kube-scheduler passes its plugins a function that schedules the group again, which can't leave
the process.

Source: docs/protocol.md "Pod groups as a whole".
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from berth.config.catalogue import ExtensionPoint
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import (
    GroupTrial,
    PlacementFeasiblePlugin,
    PlacementProgress,
    PodGroupPostFilterPlugin,
    PodGroupPostFilterResult,
)
from berth.framework.mirrors.group_trees import AnyGroup, key_of
from berth.framework.preempting import GroupPreemptionRequest
from berth.framework.status import SUCCESS, Code, Status, failed, unschedulable
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.limits import GROUP_PROPOSALS, PROGRESS
from berth.out_of_tree.packing import status_of, succeeded
from berth.out_of_tree.points.placement import PODS_OF_A_GROUP, group_message
from berth.out_of_tree.points.post_filter import packed
from berth.out_of_tree.points.sidecar_point import SidecarPoint
from berth.plugins.pod_group_lookup import group_states
from berth.snapshot.pod_group_states import AnyKey, GroupKey
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import group_pb2, identity_pb2, placement_pb2

PLACEMENT_FEASIBLE = identity_pb2.EXTENSION_POINT_PLACEMENT_FEASIBLE
POD_GROUP_POST_FILTER = identity_pb2.EXTENSION_POINT_POD_GROUP_POST_FILTER
NOT_SERVED = unschedulable()
VERDICTS = frozenset({Code.SUCCESS, Code.WAIT, Code.UNSCHEDULABLE, Code.ERROR})

Verdicts: TypeAlias = dict[PlacementProgress, Status]


class GroupPoints(SidecarPoint, PlacementFeasiblePlugin, PodGroupPostFilterPlugin):
    """PlacementFeasible and PodGroupPostFilter."""

    def judges_groups(self) -> bool:
        """Whether it announced PlacementFeasible, and new attempts use it."""
        return not self.leaving and self._offers(self.caller, PLACEMENT_FEASIBLE)

    async def placement_feasible(
        self, state: CycleState, group: AnyKey, progress: PlacementProgress
    ) -> Status:
        """The plugin's verdict; from the attempt's first call where that covered this progress."""
        caller = self._answers(state).caller
        if not self._offers(caller, PLACEMENT_FEASIBLE):
            return SUCCESS
        key = (GroupPoints, self.name)
        verdicts: Verdicts | None = state.get(key)
        if verdicts is None:
            verdicts = {}
            state.write(key, verdicts)
        if progress not in verdicts:
            await self._judge(state, caller, group, progress, verdicts)
        return verdicts[progress]

    async def _judge(
        self,
        state: CycleState,
        caller: Caller,
        group: AnyKey,
        progress: PlacementProgress,
        verdicts: Verdicts,
    ) -> None:
        """Call the plugin about this progress and all that follow if each further pod finds a node."""
        pod, ahead = state.read(CycleRecord).pod, range(min(progress.remaining, PROGRESS - 1) + 1)
        asked = [PlacementProgress(progress.remaining - n, progress.scheduled + n) for n in ahead]
        request = group_pb2.PlacementFeasibleRequest(
            call=caller.head(state, pod, with_state=False),
            group=self._group(state, group),
            progress=[group_pb2.PlacementProgress(remaining=r, scheduled=s) for r, s in asked],
        )
        try:
            read = partial(group_verdicts_of, self.name, len(asked))
            found = await caller.ask("PlacementFeasible", request, state, read)
        except SidecarError as error:
            status = self._unless_ignored(state, ExtensionPoint.PERMIT, pod, error)
            found = [status] * len(asked)
        verdicts.update(zip(asked, found, strict=True))

    async def pod_group_post_filter(
        self, state: CycleState, group: AnyGroup, pods: Sequence[Pod], trial: GroupTrial
    ) -> PodGroupPostFilterResult:
        """Call the plugin for proposals, and evict the first set of victims without which the group fits."""
        caller, key, first = self._answers(state).caller, key_of(group), state.read(CycleRecord).pod
        if not (self._offers(caller, POD_GROUP_POST_FILTER) and isinstance(key, GroupKey)):
            return PodGroupPostFilterResult(NOT_SERVED)
        request = group_pb2.PodGroupPostFilterRequest(
            call=caller.head(state, first),
            group=self._group(state, key),
            verdicts=packed(state.get(Diagnosis) or Diagnosis(list(self._handle.snapshot.names))),
        )
        try:
            read = partial(self._proposed, caller, request)
            status, proposals = await caller.ask("PodGroupPostFilter", request, state, read)
        except SidecarError as error:
            if self._ignored(state, ExtensionPoint.POST_FILTER, first, error):
                return PodGroupPostFilterResult(unschedulable(str(error)))
            return PodGroupPostFilterResult(failed(error))
        if not proposals:
            return PodGroupPostFilterResult(status)
        preemption = self._handle.preemption
        if preemption is None:
            return PodGroupPostFilterResult(failed(f"plugin {self.name}: this host cannot evict pods"))
        asks = GroupPreemptionRequest(self.name, group, pods, trial)
        return await preemption.evict_for_group(asks, proposals)

    def _proposed(
        self,
        caller: Caller,
        request: group_pb2.PodGroupPostFilterRequest,
        response: group_pb2.PodGroupPostFilterResponse,
    ) -> tuple[Status, list[list[PodInfo]]]:
        caller.check_generation(request, response.generation)
        return proposals_of(self.name, response, self._handle.snapshot)

    def _group(self, state: CycleState, group: AnyKey) -> placement_pb2.PodGroup:
        waiting = group_states(self._handle, state).known(group).unscheduled[:PODS_OF_A_GROUP]
        return group_message(group, waiting)


def group_verdicts_of(plugin: str, count: int, response: group_pb2.PlacementFeasibleResponse) -> list[Status]:
    """The verdict on each progress. Raises: SidecarError."""
    if len(response.verdicts) != count:
        text = f"PlacementFeasible has {len(response.verdicts)} verdicts on {count} numbers of pods"
        raise ProtocolError(plugin, text)
    found = [status_of(plugin, each) for each in response.verdicts]
    for status in found:
        if status.code not in VERDICTS:
            raise ProtocolError(
                plugin, f"PlacementFeasible says {status.code}, which is no verdict on a group"
            )
        if status.code is Code.ERROR:
            succeeded(plugin, "PlacementFeasible", status)
    return found


def proposals_of(
    plugin: str, response: group_pb2.PodGroupPostFilterResponse, nodes: Snapshot
) -> tuple[Status, list[list[PodInfo]]]:
    """The response's status, and the victims of each proposal. Raises: SidecarError.

    Cost: O(nodes + victims), whatever the number of proposals.
    """
    status = status_of(plugin, response.status)
    if not (status.ok or status.rejected):
        succeeded(plugin, "PodGroupPostFilter", status)
    if not response.proposals:
        return status, []
    if not status.ok:
        raise ProtocolError(plugin, "PodGroupPostFilter proposes evictions without success")
    if len(response.proposals) > GROUP_PROPOSALS:
        text = f"{len(response.proposals)} proposals, at most {GROUP_PROPOSALS} are tried"
        raise ProtocolError(plugin, text)
    named = {uid for each in response.proposals for uid in each.victim_uids}
    found = {uid: pods[uid] for pods in nodes.pods for uid in named & pods.keys()}
    return status, [_victims(plugin, each.victim_uids, found) for each in response.proposals]


def _victims(plugin: str, uids: Sequence[str], found: dict[str, PodInfo]) -> list[PodInfo]:
    if not uids:
        raise ProtocolError(plugin, "PodGroupPostFilter proposes to evict no pod")
    if len(set(uids)) < len(uids):
        raise ProtocolError(plugin, "PodGroupPostFilter names a victim twice")
    for uid in uids:
        if uid not in found:
            raise ProtocolError(plugin, f"PodGroupPostFilter names {uid} as a victim, which is on no node")
    return [found[uid] for uid in uids]
