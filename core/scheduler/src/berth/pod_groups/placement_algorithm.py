"""The placement algorithm: the default one tried within each part of the cluster that may be, the best taken.

Source: pkg/scheduler/schedule_one_podgroup.go podGroupSchedulingPlacementAlgorithm (Kubernetes v1.36).
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from berth.evaluation.points.placement_plugins import run_generate, run_placement_scores
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import Clock
from berth.framework.interface import Placement, ProposedPlacement
from berth.framework.status import PluginError, failed, unschedulable
from berth.pod_groups.group_algorithm import GroupQuestion, SchedulingContext
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.planned import try_as_planned
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.snapshot.pod_group_states import PodGroupStates

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
    profile = question.framework.profile_name
    state, record = CycleState(), question.record_of(question.members[0])
    state.write(CycleRecord, record)
    state.write(PodGroupStates, question.states.copy_of(question.key))
    phase = record.begin_phase(PLACEMENTS)
    found = await run_generate(question.framework, state, question.key, ground.snapshot, question.within)
    record.end(phase, found.status)
    if not found.status.ok:
        return GroupResult(found.status)
    metrics.generated(len(found.placements), profile)
    nominated = _nominated(ground, question, found.placements)
    results: list[tuple[Placement, GroupResult]] = []
    for placement in sorted(found.placements, key=lambda each: each is not nominated):
        started = clock.monotonic()
        result = await _try_one(ground, question, placement)
        if not result.broken:
            metrics.evaluated(clock.monotonic() - started, profile, feasible=result.status.ok)
        if placement is nominated:
            if result.status.ok and result.assignments:
                return result
            result = _with_a_pod(result)
        if result.broken:
            return result
        results.append((placement, result))
    fitting = [(placement, result) for placement, result in results if result.successful]
    if len(fitting) > 1:
        return await _best(ground, question, state, fitting, chance)
    return fitting[0][1] if fitting else _none_fits(ground, [result for _, result in results])


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


async def _try_one(ground: SchedulingContext, question: GroupQuestion, placement: Placement) -> GroupResult:
    everywhere = placement.rows.size == len(ground.snapshot)
    return await try_as_planned(ground, replace(question, within=None if everywhere else placement.rows))


def _none_fits(ground: SchedulingContext, results: Sequence[GroupResult]) -> GroupResult:
    first, counting = results[0], ground.counting
    room = sum(len(result.assignments) for result in results)
    if counting is not None:
        return replace(first, status=counting.nowhere(first.status, len(results)), room=room)
    text = f"0/{len(results)} placements are available, first placement status: {first.status.message}"
    return replace(first, status=unschedulable(text), room=room)


async def _best(
    ground: SchedulingContext,
    question: GroupQuestion,
    state: CycleState,
    fitting: Sequence[tuple[Placement, GroupResult]],
    chance: random.Random,
) -> GroupResult:
    proposed = [ProposedPlacement(placement, result.assignments) for placement, result in fitting]
    record = state.read(CycleRecord)
    phase = record.begin_phase(PLACEMENTS)
    try:
        totals = await run_placement_scores(
            question.framework, state, question.key, ground.snapshot, proposed
        )
    except PluginError as error:
        return GroupResult(failed(error))
    finally:
        record.end(phase)
    best = np.flatnonzero(totals == totals.max())
    return fitting[int(best[chance.randrange(best.size)])][1]
