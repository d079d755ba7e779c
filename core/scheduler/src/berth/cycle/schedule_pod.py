"""The scheduling algorithm: nodes that fit, their scores, and the one that is taken.

    cached evaluation of the pod's class --> feasible nodes --> scores --> host
                                                   |
                                                   +--> none: PostFilter

Running plugins, and caching their results, is done by berth.evaluation.
Source: pkg/scheduler/schedule_one.go schedulePod (Kubernetes v1.36).
"""

import logging
import random
from typing import Protocol

import msgspec

from berth.evaluation.caching.cached_evaluation import CachedEvaluation, StartOverError
from berth.evaluation.caching.equivalence_cache import EquivalenceCache, Key
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import NodeSearch
from berth.evaluation.points.post_filtering import run_post_filters
from berth.evaluation.select_host import Host, select_host
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.attempts.diagnosis import FitError
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, PluginError, Status, failed

log = logging.getLogger(__name__)


class Decision(msgspec.Struct, frozen=True):
    """A node for the pod, or the status that says why there is none and what becomes of its nomination."""

    status: Status = SUCCESS
    node_name: str = ""
    nominating_info: NominatingInfo | None = None


class PodAlgorithm(Protocol):
    """Decides on one pod at a time."""

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """A node, or why there is none."""


class SchedulePod(msgspec.Struct, frozen=True):
    """Decides on one pod at a time; without `cache`, every plugin runs on all nodes for every pod."""

    search: NodeSearch
    chance: random.Random
    cache: EquivalenceCache | None = None

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """Choose a node; where none fits, let PostFilter plugins try to make room."""
        attempt.record.node_count = attempt.node_count
        if self.cache is None:
            outcome = await self._choose(framework, attempt, CachedEvaluation(NodePlugins(framework.plugins)))
        else:
            key, evaluation = self.cache.lookup(framework, attempt)
            if attempt.meter.worked("sign"):
                await attempt.meter.breathe()
            if key is None:
                outcome = await self._choose(framework, attempt, evaluation)
            else:
                outcome = await self._choose_with_cache(self.cache, key, evaluation, framework, attempt)
        if isinstance(outcome, Status):
            return await _without_node(framework, attempt, outcome)
        attempt.record.score = outcome.score
        return Decision(node_name=attempt.nodes.names[outcome.row])

    async def _choose_with_cache(
        self,
        cache: EquivalenceCache,
        key: Key,
        evaluation: CachedEvaluation,
        framework: Framework,
        attempt: Attempt,
    ) -> Host | Status:
        state, intervals, rotation = attempt.state, attempt.record.intervals, self.search.rotation
        values, marks, start = len(state), len(intervals), rotation.start
        try:
            outcome = await self._choose(framework, attempt, evaluation)
        except StartOverError as error:
            log.debug("asked about all nodes anew pod=%s cause=%s", attempt.pod.key, error.__cause__)
            cache.drop_outdated(key)
            rotation.start = start
            state.start_over(values)
            del intervals[marks:]
            return await self._choose(framework, attempt, CachedEvaluation(evaluation.plugins))
        except BaseException:
            cache.drop(key)
            raise
        cache.store(key, evaluation, reused=attempt.record.remembered)
        return outcome

    async def _choose(
        self, framework: Framework, attempt: Attempt, evaluation: CachedEvaluation
    ) -> Host | Status:
        """The node, or the status that ends the cycle: a FitError where none fits. Raises: StartOverError."""
        feasible = await self.search.find(framework, attempt, evaluation)
        attempt.record.remembered = evaluation.known
        if isinstance(feasible, Status):
            if isinstance(feasible.error, FitError):
                evaluation.end(attempt)
            return feasible
        try:
            host = await select_host(framework, attempt, evaluation, feasible, self.chance)
        except PluginError as error:
            return failed(error)
        evaluation.end(attempt)
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
    for observer in framework.decision_observers:
        observer.on_no_node(attempt, diagnosis, result)
    return Decision(status, nominating_info=result.nominating_info)
