"""Tries the evictions that a plugin proposes for a pod group, and carries out the first by which it fits.

Source: docs/protocol.md "Pod groups as a whole".
"""

from collections.abc import Sequence

import msgspec

from berth.framework.handle import Handle
from berth.framework.interface import PodGroupPostFilterResult
from berth.framework.preempting import GroupPreemptionRequest
from berth.framework.status import SUCCESS, Code, Status, unschedulable
from berth.preemption.candidates import Candidate
from berth.preemption.eviction import PreemptionEvictions
from berth.preemption.group_preemption import nominations
from berth.preemption.group_search import THE_DOMAIN
from berth.preemption.preemptor import Preemptor
from berth.snapshot.pod_info import PodInfo


class GroupProposals(msgspec.Struct, frozen=True):
    """Makes room for groups as plugins propose it, in one profile."""

    handle: Handle
    evictions: PreemptionEvictions

    async def run(
        self, request: GroupPreemptionRequest, proposals: Sequence[Sequence[PodInfo]]
    ) -> PodGroupPostFilterResult:
        """Have the first victims evicted without which the group fits, or say why not without the last.

        All plugins are asked about the group, the one that proposes it too. Cost: an attempt at the group for
        each proposal. Raises: OverBudgetError.
        """
        status = SUCCESS
        for victims in proposals:
            for victim in victims:
                request.trial.take_out(victim)
            status = await request.trial.fits()
            if status.ok:
                return await self._evict(request, victims)
            for victim in reversed(victims):
                request.trial.put_back(victim)
        text = f"plugin {request.plugin} would evict pods for the group, which would not fit without them"
        return PodGroupPostFilterResult(unschedulable(f"{text}: {status.message}"))

    async def _evict(
        self, request: GroupPreemptionRequest, victims: Sequence[PodInfo]
    ) -> PodGroupPostFilterResult:
        preemptor = Preemptor(request.group, request.pods)
        candidate = Candidate(THE_DOMAIN, tuple(victim.pod for victim in victims), 0)
        status = await self.evictions.evict_for(request.plugin, preemptor, candidate)
        if not status.ok:
            return PodGroupPostFilterResult(status)
        text = f"pod group preemption: found a placement for podgroup, preempting {len(victims)} victims"
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (text,)), nominations(request.trial.found))
