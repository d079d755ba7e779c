"""Which of several placements a group goes to: the one with the highest score, drawn among equals.

Source: pkg/scheduler/schedule_one_podgroup.go podGroupSchedulingPlacementAlgorithm (Kubernetes v1.36).
"""

import random
from collections.abc import Sequence

import numpy as np

from berth.evaluation.points.placement_plugins import run_placement_scores
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Placement, ProposedPlacement
from berth.framework.status import PluginError, failed
from berth.objects.pods.pod import Pod
from berth.pod_groups.group_algorithm import GroupQuestion
from berth.pod_groups.group_result import GroupResult
from berth.snapshot.snapshot import Snapshot

Fitting = tuple[Placement, Sequence[tuple[Pod, str]]]
"""A placement that the group fits in, and the pods that would be placed there."""


async def chosen_placement(
    question: GroupQuestion,
    nodes: Snapshot,
    state: CycleState,
    fitting: Sequence[Fitting],
    *,
    chance: random.Random,
    phase_name: str,
) -> int | GroupResult:
    """Which of them scores highest, by its place among them; a result where a plugin fails."""
    if len(fitting) == 1:
        return 0
    proposed = [ProposedPlacement(placement, assignments) for placement, assignments in fitting]
    record = state.read(CycleRecord)
    phase = record.begin_phase(phase_name)
    try:
        totals = await run_placement_scores(question.framework, state, question.key, nodes, proposed)
    except PluginError as error:
        return GroupResult(failed(error))
    finally:
        record.end(phase)
    best = np.flatnonzero(totals == totals.max())
    return int(best[chance.randrange(best.size)])
