"""The scheduling algorithm: nodes that fit, their scores, and the one that is taken.

    question -> (remembered) find_again -> scores of what changed --> host
       |             |  outdated, or no node fits
       +-------------+--> find, all nodes -> scores -> host, and the answers are remembered

Source: spec/core.md 4.3.
"""

import logging
import random
from dataclasses import dataclass

import numpy as np

from berth.evaluation.equal_pods import EqualPods, Question
from berth.evaluation.extending import add_priorities
from berth.evaluation.find_nodes import Feasible, NodeSearch
from berth.evaluation.kept import Kept
from berth.evaluation.post_filtering import run_post_filters
from berth.evaluation.remembered import OutdatedError, Remembered
from berth.evaluation.scoring import run_pre_scores, run_scores, score_within
from berth.evaluation.select_host import select_host
from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import OverBudgetError
from berth.framework.diagnosis import FitError
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework
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
    """Decides on one pod at a time; without `equal_pods` every pod is worked out from nothing."""

    search: NodeSearch
    chance: random.Random
    equal_pods: EqualPods | None = None

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """Choose a node; where none fits, let PostFilter plugins try to make room."""
        attempt.record.node_count = attempt.node_count
        question = None if self.equal_pods is None else self.equal_pods.question(framework, attempt)
        if self.equal_pods is None or question is None:
            return await self._from_nothing(framework, attempt, None)
        if question.remembered is not None:
            node_name = await self._as_before(self.equal_pods, framework, attempt, question)
            if node_name:
                return Decision(node_name=node_name)
        kept = Kept() if question.asked_before else None
        decision = await self._from_nothing(framework, attempt, kept)
        if kept is not None and decision.node_name and kept.whole:
            self.equal_pods.remember(question, attempt, kept)
        return decision

    async def _from_nothing(self, framework: Framework, attempt: Attempt, kept: Kept | None) -> Decision:
        feasible = await self.search.find(framework, attempt, kept)
        if isinstance(feasible, Status):
            return await _without_node(framework, attempt, feasible)
        _note(feasible, attempt)
        try:
            return Decision(node_name=await self._choose(framework, attempt, feasible, kept))
        except PluginError as error:
            return Decision(failed(error), nominating_info=CLEAR_NOMINATION)

    async def _choose(
        self, framework: Framework, attempt: Attempt, feasible: Feasible, kept: Kept | None
    ) -> str:
        if _any_will_do(framework, feasible):
            return self._any(framework, feasible, attempt)
        await run_pre_scores(framework.plugins.pre_score, attempt, feasible.mask, kept)
        scores = await run_scores(framework.plugins.score, attempt, feasible.mask, kept)
        return await self._best(framework, attempt, scores)

    def _any(self, framework: Framework, feasible: Feasible, attempt: Attempt) -> str:
        rows = np.flatnonzero(feasible.mask)
        row = int(rows[self.chance.randrange(rows.size)])
        for witness in framework.witnesses:
            witness.chose(attempt, row, NodeScores(rows, np.zeros(rows.size, dtype=np.int64)))
        return attempt.nodes.names[row]

    async def _best(self, framework: Framework, attempt: Attempt, scores: NodeScores) -> str:
        if framework.extenders:
            await add_priorities(framework.extenders, attempt, scores)
        row, attempt.record.score = select_host(scores, self.chance)
        for witness in framework.witnesses:
            witness.chose(attempt, row, scores)
        return attempt.nodes.names[row]

    async def _as_before(
        self, equal_pods: EqualPods, framework: Framework, attempt: Attempt, question: Question
    ) -> str:
        """The node by what is remembered; empty, with no trace left, where the pod has to be worked out."""
        assert question.remembered is not None
        state, record, rotation = attempt.state, attempt.record, self.search.rotation
        start, values, intervals = rotation.start, len(state), len(record.intervals)
        try:
            node_name = await self._choose_again(framework, attempt, question.remembered)
            if node_name:
                equal_pods.reused()
                record.remembered = True
                return node_name
            equal_pods.nowhere()
        except OverBudgetError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, asking from nothing says it better
            if not isinstance(error, OutdatedError):
                log.debug("worked out anew pod=%s error=%r", attempt.pod.key, error)
            equal_pods.outdated(question)
        rotation.start = start
        state.start_over(values)
        del record.intervals[intervals:]
        return ""

    async def _choose_again(self, framework: Framework, attempt: Attempt, remembered: Remembered) -> str:
        feasible = await self.search.find_again(framework, attempt, remembered)
        if feasible is None:
            return ""
        if _any_will_do(framework, feasible):
            remembered.check_resumed(attempt)
            _note(feasible, attempt)
            return self._any(framework, feasible, attempt)
        scores = await _scores_again(framework, attempt, feasible, remembered)
        _note(feasible, attempt)
        return await self._best(framework, attempt, scores)


async def _scores_again(
    framework: Framework, attempt: Attempt, feasible: Feasible, remembered: Remembered
) -> NodeScores:
    if not remembered.scored:
        raise OutdatedError("scores")
    record, asked = attempt.record, remembered.unsettled
    await run_pre_scores(asked.pre_score, attempt, feasible.mask)
    attempt.state.skip_score |= remembered.skip_score
    point = record.begin("Score")
    await remembered.refresh_scores(attempt, point)
    remembered.check_resumed(attempt)
    all_that_fit = feasible.count == np.count_nonzero(remembered.fits)
    if all_that_fit and not (asked.score or framework.extenders):
        scores = remembered.ranks(attempt)
    else:
        scores = remembered.scores(attempt, feasible.mask)
        await score_within(asked.score, attempt, scores, point=point)
    record.end(point)
    return scores


def _any_will_do(framework: Framework, feasible: Feasible) -> bool:
    return feasible.count == 1 or not (framework.plugins.score or framework.extenders)


def _note(feasible: Feasible, attempt: Attempt) -> None:
    attempt.record.feasible_count = feasible.count
    attempt.record.evaluated_count = feasible.evaluated


async def guarded_decision(algorithm: SchedulePod, framework: Framework, attempt: Attempt) -> Decision:
    """The algorithm's decision; whatever breaks in it costs this pod its attempt and nobody else."""
    try:
        return await algorithm.decide(framework, attempt)
    except OverBudgetError as error:
        return Decision(failed(error), nominating_info=CLEAR_NOMINATION)
    except Exception as error:
        log.exception("scheduling cycle broke off pod=%s", attempt.pod.key)
        return Decision(failed(error), nominating_info=CLEAR_NOMINATION)


async def _without_node(framework: Framework, attempt: Attempt, status: Status) -> Decision:
    if not isinstance(status.error, FitError):
        return Decision(status, nominating_info=CLEAR_NOMINATION)
    diagnosis = status.error.diagnosis
    result = await run_post_filters(framework.plugins.post_filter, attempt, diagnosis)
    diagnosis.post_filter_message = result.status.message
    for witness in framework.witnesses:
        witness.found_none(attempt, diagnosis, result)
    return Decision(status, nominating_info=result.nominating_info)
