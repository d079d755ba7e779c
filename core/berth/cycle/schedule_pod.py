"""The scheduling algorithm: nodes that fit, their scores, and the one that is taken.

    what is known of the pod's class --> nodes that fit --> scores --> host
                                              |
                                              +--> none: PostFilter

What is asked of plugins, and what is known already, is berth.evaluation's business.
Source: pkg/scheduler/schedule_one.go schedulePod (Kubernetes v1.36).
"""

import logging
import random
from dataclasses import dataclass
from typing import Protocol

from berth.evaluation.answers import Answers, StartOverError
from berth.evaluation.find_nodes import NodeSearch
from berth.evaluation.known_classes import Key, KnownClasses
from berth.evaluation.node_plugins import NodePlugins
from berth.evaluation.post_filtering import run_post_filters
from berth.evaluation.select_host import Host, select_host
from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import OverBudgetError
from berth.framework.diagnosis import FitError
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, PluginError, Status, failed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decision:
    """A node for the pod, or the status that says why there is none and what becomes of its nomination."""

    status: Status = SUCCESS
    node_name: str = ""
    nominating_info: NominatingInfo | None = None


class PodAlgorithm(Protocol):
    """Decides on one pod at a time."""

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """A node, or why there is none."""


@dataclass(frozen=True, slots=True)
class SchedulePod:
    """Decides on one pod at a time; without `classes` nothing is known of any."""

    search: NodeSearch
    chance: random.Random
    classes: KnownClasses | None = None

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """Choose a node; where none fits, let PostFilter plugins try to make room."""
        attempt.record.node_count = attempt.node_count
        if self.classes is None:
            outcome = await self._choose(framework, attempt, Answers(NodePlugins(framework.plugins)))
        else:
            key, answers = self.classes.answers(framework, attempt)
            if attempt.meter.worked("sign"):
                await attempt.meter.breathe()
            if key is None:
                outcome = await self._choose(framework, attempt, answers)
            else:
                outcome = await self._choose_by_class(self.classes, key, answers, framework, attempt)
        if isinstance(outcome, Status):
            return await _without_node(framework, attempt, outcome)
        attempt.record.score = outcome.score
        return Decision(node_name=attempt.nodes.names[outcome.row])

    async def _choose_by_class(
        self, classes: KnownClasses, key: Key, answers: Answers, framework: Framework, attempt: Attempt
    ) -> Host | Status:
        state, intervals, rotation = attempt.state, attempt.record.intervals, self.search.rotation
        values, marks, start = len(state), len(intervals), rotation.start
        try:
            outcome = await self._choose(framework, attempt, answers)
        except StartOverError as error:
            log.debug("asked about all nodes anew pod=%s cause=%r", attempt.pod.key, error.__cause__)
            classes.outdated(key)
            rotation.start = start
            state.start_over(values)
            del intervals[marks:]
            return await self._choose(framework, attempt, Answers(answers.plugins))
        except BaseException:
            classes.forget(key)
            raise
        classes.keep(key, answers, reused=attempt.record.remembered)
        return outcome

    async def _choose(self, framework: Framework, attempt: Attempt, answers: Answers) -> Host | Status:
        """The node, or the status that ends the cycle: a FitError where none fits. Raises: StartOverError."""
        feasible = await self.search.find(framework, attempt, answers)
        attempt.record.remembered = answers.known
        if isinstance(feasible, Status):
            if isinstance(feasible.error, FitError):
                answers.end(attempt)
            return feasible
        try:
            host = await select_host(framework, attempt, answers, feasible, self.chance)
        except PluginError as error:
            return failed(error)
        answers.end(attempt)
        return host


async def guarded_decision(algorithm: PodAlgorithm, framework: Framework, attempt: Attempt) -> Decision:
    """The algorithm's decision; whatever breaks in it costs this pod its attempt and no other."""
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
