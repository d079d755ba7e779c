"""Which units have to leave the cluster so that a pod group fits: all that may, then back whatever can stay.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go selectVictimsOnDomain (Kubernetes v1.36).
"""

from collections.abc import Sequence
from itertools import compress

import msgspec

from berth.framework.interface import GroupTrial
from berth.framework.status import Status, unresolvable
from berth.preemption.candidates import Candidate
from berth.preemption.units import Unit, candidate_of
from berth.preemption.victims import CompiledBudgets, Seniority

NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")
THE_DOMAIN = "cluster"
"""The name that stands where a pod's preemption names a node."""


class GroupSearch(msgspec.Struct, frozen=True):
    """Finds victims by trying; the trial is left as the last try had it.

    With `whole_units` all pods of a unit use up the budgets that mean them, else none behind the first one
    whose eviction violates one.
    """

    trial: GroupTrial
    budgets: CompiledBudgets
    seniority: Seniority
    whole_units: bool = False

    async def candidate(self, units: Sequence[Unit]) -> Candidate | Status:
        """The victims, the most important first, or the status that says why there are none."""
        if not units:
            return NO_VICTIMS
        for unit in units:
            self._take_out(unit)
        status = await self.trial.fits()
        if not status.ok:
            return status
        ordered = sorted(units, key=lambda unit: unit.importance(self.seniority))
        violates = self.budgets.violated_by((unit.pods for unit in ordered), whole_units=self.whole_units)
        gone = await self._have_to_go(list(compress(ordered, violates)))
        violations = len(gone)
        gone += await self._have_to_go(list(compress(ordered, (not one for one in violates))))
        gone.sort(key=lambda unit: unit.importance(self.seniority))
        return candidate_of(THE_DOMAIN, gone, violations)

    async def _have_to_go(self, units: Sequence[Unit]) -> list[Unit]:
        """Those that cannot stay, looked at in order; the others are back.

        If the group fits beside all of them, it fits beside each: one try answers for many. Cost: a number of
        tries that grows with those who go, and with the logarithm of those who stay.
        """
        if not units or await self._can_stay(units):
            return []
        if len(units) == 1:
            return list(units)
        half = len(units) // 2
        return await self._have_to_go(units[:half]) + await self._have_to_go(units[half:])

    async def _can_stay(self, units: Sequence[Unit]) -> bool:
        for unit in units:
            for info in unit.pods:
                self.trial.put_back(info)
        stays = await self.trial.still_fits()
        if not stays:
            for unit in reversed(units):
                self._take_out(unit)
        return stays

    def _take_out(self, unit: Unit) -> None:
        for info in unit.pods:
            self.trial.take_out(info)
