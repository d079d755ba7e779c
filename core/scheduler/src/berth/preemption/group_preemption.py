"""Preemption for a whole pod group: from a group that fits nowhere to nominations and evictions on their way.

    DefaultPreemption.pod_group_post_filter -> (evictions of before still on their way?) -> eligible?
        -> victims, by trying (group_search.py) -> Evictions, and from Kubernetes 1.37 on nominations

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go Preempt (Kubernetes v1.36, v1.37).
"""

from collections.abc import Mapping

import msgspec

from berth.framework.handle import Handle
from berth.framework.interface import NominatingInfo, NominatingMode, PodGroupPostFilterResult
from berth.framework.mirrors.group_trees import key_of, kind_of
from berth.framework.preempting import GroupPreemptionRequest
from berth.framework.status import Code, Status, unschedulable
from berth.preemption.candidates import Candidate
from berth.preemption.eligibility import NEVER, leaves_for_another
from berth.preemption.eviction import PreemptionEvictions
from berth.preemption.group_search import GroupSearch
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.preemption.preemptor import Preemptor
from berth.preemption.units import victim_units
from berth.preemption.victims import CompiledBudgets, Seniority

GROUPS_POLICY = "PodGroupPreemptionPolicy"
ONGOING = "ongoing preemption on nominated nodes"


class GroupPreemption(msgspec.Struct, frozen=True):
    """Makes room for groups, in one profile."""

    handle: Handle
    budgets: CompiledBudgets
    seniority: Seniority
    evictions: PreemptionEvictions
    metrics: PreemptionMetrics

    async def run(self, request: GroupPreemptionRequest) -> PodGroupPostFilterResult:
        """Have victims evicted so that the whole group fits, or say why not."""
        keeps_nodes = self.handle.rules.groups_keep_the_nodes_found
        if keeps_nodes and self._awaits_victims(request):
            as_they_are = {pod.uid: pod.nominated_node_name for pod in request.pods}
            return PodGroupPostFilterResult(Status(Code.SUCCESS, (ONGOING,)), nominations(as_they_are))
        if self._never_preempts(request):
            return PodGroupPostFilterResult(unschedulable(NEVER))
        started = self.handle.clock.monotonic()
        found = await self._search(request, whole_units=keeps_nodes)
        code = found.code if isinstance(found, Status) else Code.SUCCESS
        self.metrics.evaluated(
            kind_of(key_of(request.group)), str(code), self.handle.clock.monotonic() - started
        )
        if isinstance(found, Status):
            return PodGroupPostFilterResult(found)
        preemptor = Preemptor(request.group, request.pods)
        status = await self.evictions.evict_for(request.plugin, preemptor, found)
        if not (keeps_nodes and status.ok):
            return PodGroupPostFilterResult(status)
        text = f"found a placement for podgroup, preempting {len(found.victims)} victims"
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (text,)), nominations(request.trial.found))

    def _never_preempts(self, request: GroupPreemptionRequest) -> bool:
        if self.handle.feature_enabled(GROUPS_POLICY):
            return request.group.spec.preemption_policy == "Never"
        return any(pod.spec.preemption_policy == "Never" for pod in request.pods)

    async def _search(self, request: GroupPreemptionRequest, *, whole_units: bool) -> Candidate | Status:
        placed = (info for pods in self.handle.snapshot.pods for info in pods.values())
        units = victim_units(placed, self.handle.listers.trees, request.group)
        search = GroupSearch(request.trial, self.budgets, self.seniority, whole_units=whole_units)
        return await search.candidate(units)

    def _awaits_victims(self, request: GroupPreemptionRequest) -> bool:
        """Whether victims of the group are still on their way out."""
        if self.evictions.running(request.group.uid):
            return True
        nodes, priority = self.handle.snapshot, request.group.spec.priority or 0
        rows = {nodes.row_of.get(pod.nominated_node_name) for pod in request.pods} - {None}
        there = (info.pod for row in rows if row is not None for info in nodes.pods[row].values())
        return any(pod.priority < priority and leaves_for_another(pod) for pod in there)


def nominations(nodes: Mapping[str, str]) -> dict[str, NominatingInfo]:
    """Nominate these pods, by UID, to these nodes; without a node a nomination is taken back."""
    return {uid: NominatingInfo(NominatingMode.OVERRIDE, name) for uid, name in nodes.items()}
