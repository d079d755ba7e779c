"""The scheduling algorithm: nodes that fit, their scores, and the one that is taken.

Source: spec/core.md 4.3.
"""

import logging
import random
from dataclasses import dataclass

import numpy as np

from berth.cycle.find_nodes import Feasible, NodeSearch
from berth.cycle.select_host import select_host
from berth.framework.attempt import Attempt
from berth.framework.diagnosis import FitError
from berth.framework.extending import add_priorities
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo
from berth.framework.post_filtering import run_post_filters
from berth.framework.runtime import Framework
from berth.framework.scoring import run_pre_scores, run_scores
from berth.framework.status import SUCCESS, PluginError, Status, failed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decision:
    """A node for the pod, or the status that says why there is none and what becomes of its nomination."""

    status: Status = SUCCESS
    node_name: str = ""
    nominating_info: NominatingInfo | None = None


@dataclass(frozen=True, slots=True)
class SchedulePod:
    """Decides on one pod at a time."""

    search: NodeSearch
    chance: random.Random

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """Choose a node; where none fits, let PostFilter plugins try to make room."""
        attempt.record.node_count = len(attempt.nodes)
        feasible = await self.search.find(framework, attempt)
        if isinstance(feasible, Status):
            return await _without_node(framework, attempt, feasible)
        attempt.record.feasible_count = feasible.count
        attempt.record.evaluated_count = feasible.evaluated
        try:
            return Decision(node_name=await self._choose(framework, attempt, feasible))
        except PluginError as error:
            return Decision(failed(error), nominating_info=CLEAR_NOMINATION)

    async def _choose(self, framework: Framework, attempt: Attempt, feasible: Feasible) -> str:
        if feasible.count == 1 or not (framework.plugins.score or framework.extenders):
            rows = np.flatnonzero(feasible.mask)
            return attempt.nodes.names[int(rows[self.chance.randrange(rows.size)])]
        await run_pre_scores(framework.plugins.pre_score, attempt, feasible.mask)
        scores = await run_scores(framework.plugins.score, attempt, feasible.mask)
        if framework.extenders:
            await add_priorities(framework.extenders, attempt, scores)
        row, attempt.record.score = select_host(scores, self.chance)
        return attempt.nodes.names[row]


async def guarded_decision(algorithm: SchedulePod, framework: Framework, attempt: Attempt) -> Decision:
    """The algorithm's decision; whatever breaks in it costs this pod its attempt and nobody else."""
    try:
        return await algorithm.decide(framework, attempt)
    except Exception as error:
        log.exception("scheduling cycle broke off pod=%s", attempt.pod.key)
        return Decision(failed(error), nominating_info=CLEAR_NOMINATION)


async def _without_node(framework: Framework, attempt: Attempt, status: Status) -> Decision:
    if not isinstance(status.error, FitError):
        return Decision(status, nominating_info=CLEAR_NOMINATION)
    diagnosis = status.error.diagnosis
    result = await run_post_filters(framework.plugins.post_filter, attempt, diagnosis)
    diagnosis.post_filter_message = result.status.message
    return Decision(status, nominating_info=result.nominating_info)
