"""The placement algorithm: the default one tried within each part of the cluster that may be, the best taken.

Source: pkg/scheduler/schedule_one_podgroup.go podGroupSchedulingPlacementAlgorithm (Kubernetes v1.36).
"""

import logging
import random
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from berth.evaluation.points.placement_plugins import run_generate
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import Clock
from berth.framework.interface import Placement
from berth.framework.status import unschedulable
from berth.objects.pods.pod import Pod
from berth.pod_groups.group_algorithm import GroupQuestion, SchedulingContext
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.placement_choice import Fitting, chosen_placement
from berth.pod_groups.placement_counts import Counted, counted
from berth.pod_groups.planned import try_as_planned
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.snapshot.pod_group_states import PodGroupStates

log = logging.getLogger(__name__)

PLACEMENTS = "pod group placements"
NOTHING_PLACED = "nominated placement is feasible but no pending pod was scheduled"


async def try_placements(
    ground: SchedulingContext,
    question: GroupQuestion,
    chance: random.Random,
    *,
    clock: Clock,
    metrics: PodGroupMetrics,
) -> GroupResult:
    """The result of the placement that the group fits in best.

    What plugins say of placements goes into the first member's record.
    """
    state, record = CycleState(), question.record_of(question.members[0])
    state.write(CycleRecord, record)
    state.write(PodGroupStates, question.states.copy_of(question.key))
    phase = record.begin_phase(PLACEMENTS)
    found = await run_generate(question.framework, state, question.key, ground.snapshot, question.within)
    record.end(phase, found.status)
    if not found.status.ok:
        return GroupResult(found.status)
    metrics.generated(len(found.placements), question.framework.profile_name)
    return await PlacementTrials(ground, question, state, chance, clock, metrics).best(found.placements)


class PlacementTrials(msgspec.Struct):
    """The group in one placement after the other; in placements where it can be counted it is not tried."""

    ground: SchedulingContext
    question: GroupQuestion
    state: CycleState
    chance: random.Random
    clock: Clock
    metrics: PodGroupMetrics

    async def best(self, placements: Sequence[Placement]) -> GroupResult:
        """The result of the placement that the group fits in best, or why it fits in none."""
        nominated = _nominated(self.ground, self.question, placements)
        counts = None if nominated else await self._counted(placements)
        if counts is not None:
            result = await self._best_of(placements, counts)
            if result is not None:
                return result
            log.warning("pod group tried in all placements, as it was miscounted group=%s", self.question.key)
        return await self._best_tried(placements, nominated)

    async def _counted(self, placements: Sequence[Placement]) -> list[Counted | None] | None:
        started = self.clock.monotonic()
        counts = await counted(self.ground, self.question, placements)
        seconds = (self.clock.monotonic() - started) / max(len(placements), 1)
        profile = self.question.framework.profile_name
        for feasible in (True, False):
            if many := sum(count is not None and count.fits is feasible for count in counts or ()):
                self.metrics.evaluated(seconds, profile, feasible=feasible, placements=many)
        return counts

    async def _best_of(
        self, placements: Sequence[Placement], counts: Sequence[Counted | None]
    ) -> GroupResult | None:
        """The same by counts, the group tried where it cannot be counted; None where they prove wrong."""
        results = list[Counted | GroupResult]()
        for placement, count in zip(placements, counts, strict=True):
            result = count or await self._tried(placement)
            if isinstance(result, GroupResult) and result.broken:
                return result
            results.append(result)
        fitting = [place for place, result in enumerate(results) if result.fits]
        if not fitting:
            first = results[0]
            if not isinstance(first, GroupResult):
                first = await self._tried(placements[0], counted_already=True)
            if first.broken or first.fits:
                return first if first.broken else None
            return self._none_fits(first, [result.assignments for result in results])
        chosen = await self._chosen([(placements[place], results[place].assignments) for place in fitting])
        if isinstance(chosen, GroupResult):
            return chosen
        best = results[fitting[chosen]]
        if isinstance(best, GroupResult):
            return best
        result = await self._tried(placements[fitting[chosen]], counted_already=True)
        as_counted = result.fits and len(result.assignments) == len(best.assignments)
        return result if as_counted or result.broken else None

    async def _best_tried(self, placements: Sequence[Placement], nominated: Placement | None) -> GroupResult:
        results: list[tuple[Placement, GroupResult]] = []
        for placement in sorted(placements, key=lambda each: each is not nominated):
            result = await self._tried(placement)
            if placement is nominated:
                if result.status.ok and result.assignments:
                    return result
                result = _with_a_pod(result)
            if result.broken:
                return result
            results.append((placement, result))
        fitting = [(placement, result) for placement, result in results if result.fits]
        if not fitting:
            return self._none_fits(results[0][1], [result.assignments for _, result in results])
        chosen = await self._chosen([(placement, result.assignments) for placement, result in fitting])
        return chosen if isinstance(chosen, GroupResult) else fitting[chosen][1]

    async def _tried(self, placement: Placement, *, counted_already: bool = False) -> GroupResult:
        started, ground = self.clock.monotonic(), self.ground
        everywhere = placement.rows.size == len(ground.snapshot)
        within = None if everywhere else placement.rows
        result = await try_as_planned(ground, msgspec.structs.replace(self.question, within=within))
        if not (result.broken or counted_already):
            seconds, profile = self.clock.monotonic() - started, self.question.framework.profile_name
            self.metrics.evaluated(seconds, profile, feasible=result.status.ok)
        return result

    def _none_fits(self, first: GroupResult, assignments: Sequence[Sequence[tuple[Pod, str]]]) -> GroupResult:
        room, counting = sum(map(len, assignments)), self.ground.counting
        if counting is not None:
            return replace(first, status=counting.nowhere(first.status, len(assignments)), room=room)
        text = (
            f"0/{len(assignments)} placements are available, first placement status: {first.status.message}"
        )
        return replace(first, status=unschedulable(text), room=room)

    async def _chosen(self, fitting: Sequence[Fitting]) -> int | GroupResult:
        """Which of several placements scores highest, by its place among them."""
        nodes = self.ground.snapshot
        return await chosen_placement(
            self.question, nodes, self.state, fitting, chance=self.chance, phase_name=PLACEMENTS
        )


def _nominated(
    ground: SchedulingContext, question: GroupQuestion, placements: Sequence[Placement]
) -> Placement | None:
    """The one placement with a node that a pod is nominated to; None where there are several, or none."""
    if ground.counting is None or not ground.counting.nominated_first or question.in_tree:
        return None
    named = {member.pod.nominated_node_name for member in question.members}
    rows = [ground.snapshot.row_of[name] for name in named if name in ground.snapshot.row_of]
    found = [each for each in placements if np.isin(rows, each.rows).any()] if rows else []
    return found[0] if len(found) == 1 else None


def _with_a_pod(result: GroupResult) -> GroupResult:
    """The result, a rejection where enough pods run already and none of the others was placed."""
    if result.status.ok and not result.assignments:
        return replace(result, status=unschedulable(NOTHING_PLACED))
    return result
