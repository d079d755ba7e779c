"""The cycle of a pod group: its pods popped together, decided on together, and handed in together.

    queue.pop -> members -> snapshot -> default or placement algorithm -> (group preemption) -> submission
                    |                                                                            |      |
                    +-- broken: failure handling of all                         binding cycles --+      |
                                                                   failure handling: back to the queue -+

From Kubernetes 1.37 on the group is what is popped; up to 1.36 a popped pod takes those of its group along.

Called by: the scheduling loop's body, for a popped group, or a popped pod that has a scheduling group.

Source: pkg/scheduler/schedule_one_podgroup.go scheduleOnePodGroup, podGroupCycle (Kubernetes v1.36, v1.37).
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from berth.cycle.skip_check import skipped
from berth.framework.attempts.cycle_budget import CycleMeter, OverBudgetError
from berth.framework.clock import Clock
from berth.framework.interface import CLEAR_NOMINATION
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, kind_of
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed
from berth.objects.pods.pod import Pod
from berth.pod_groups.conditions import GroupConditions
from berth.pod_groups.counting import Counting
from berth.pod_groups.group_algorithm import GroupQuestion, SchedulingContext
from berth.pod_groups.group_preemption import preempt_for_group
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.members import Member, popped_with, profile_of
from berth.pod_groups.placement_algorithm import try_placements
from berth.pod_groups.planned import plans, try_as_planned
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.pod_groups.releasing import release_for
from berth.pod_groups.submission import Submission
from berth.pod_groups.tree_algorithm import TreeTrial, by_group
from berth.pod_groups.tree_result import TreeResults, of_tree
from berth.pod_groups.validation import OF_A_GROUP, Words, validate
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.pod_group_states import AnyKey, GroupKey, PodGroupStates, TreeKey

log = logging.getLogger(__name__)


class GroupFeatures(msgspec.Struct, frozen=True):
    """Which of the gates are on that change the cycle, and how the release says what pods differ in."""

    topology_aware: bool = False
    preemption: bool = False
    words: Words = OF_A_GROUP
    preemption_policy: bool = False


class PodGroupCycle(msgspec.Struct, frozen=True):
    """Schedules one group after the other."""

    frameworks: Mapping[str, Framework]
    queue: SchedulingQueue
    states: PodGroupStates
    trees: GroupTrees
    ground: SchedulingContext
    submission: Submission
    conditions: GroupConditions
    features: GroupFeatures
    chance: random.Random
    clock: Clock
    metrics: PodGroupMetrics

    async def schedule(self, popped: QueuedPodInfo, key: GroupKey) -> None:
        """Run the cycle of the popped pod's group; all of its pods are out of flight, or on their way."""
        if isinstance(popped, QueuedGroupInfo):
            await self._schedule_queued(popped)
            return
        started = self.clock.monotonic()
        infos = [popped]
        try:
            infos = popped_with(self.queue, popped, self.states.get(key))
            framework = profile_of(infos, self.frameworks)
        except (KeyError, PluginError) as error:
            self._fail_all(infos, str(error.args[0]))
            return
        members = self._begun(infos, framework.profile_name)
        if members:
            await self._attempt(framework, key, members, started)

    async def _schedule_queued(self, group: QueuedGroupInfo) -> None:
        """Try a popped group, and have the queue take back what is left of it."""
        assert self.queue.groups is not None, "groups are queued"
        status = failed("the attempt at the pod group broke off")
        try:
            status = await self._try_queued(group)
        finally:
            self.queue.groups.ended(group, status)

    async def _try_queued(self, group: QueuedGroupInfo) -> Status:
        """What the attempt came to, before preemption."""
        started, key, infos = self.clock.monotonic(), group.group_key, list(group.members)
        try:
            framework = self.validated(key, [info.pod for info in infos])
        except PluginError as error:
            status = failed(error)
            self._fail_all(infos, status.message)
            if self.trees.get(key) is not None:
                self._tell(key, GroupResult(status))
            return status
        members = self._begun(infos, framework.profile_name)
        group.members[:] = [member.info for member in members]
        if not members:
            return SUCCESS
        return (await self._attempt(framework, key, members, started)).decided

    def validated(self, key: AnyKey, waiting: Sequence[Pod]) -> Framework:
        """The profile of a queued group's pods. Raises: PluginError where they cannot be tried together."""
        group = self.trees.get(key)
        if group is None:
            raise PluginError(f'{kind_of(key)}.scheduling.k8s.io "{key.name}" not found')
        placed = [pod for leaf in self.trees.leaves(key) for pod in self.states.known(leaf).scheduled]
        below = list(self.trees.every(key))[1:]
        features = self.features
        has_policy = features.preemption_policy
        return validate(
            group, waiting, placed, self.frameworks, features.words, below=below, group_has_policy=has_policy
        )

    async def _attempt(
        self, framework: Framework, key: AnyKey, members: Sequence[Member], started: float
    ) -> GroupResult:
        budgets = self.submission.failure.budgets
        meter = budgets.begin_group([member.info for member in members], len(self.ground.snapshot))
        question = GroupQuestion.of(framework, key, members, self.states, meter)
        result = await meter.timed(self.decide(question))
        budgets.settle(members[0].info)
        results = self._results(key, result)
        turns = budgets.without_limit()
        await turns.timed(self._submit(framework, members, results, result, turns))
        for group, of_this in results.items():
            self.conditions.tell(group, of_this)
        seconds = self.clock.monotonic() - started
        self.metrics.attempted(result.name, framework.profile_name, seconds)
        return result

    async def _submit(
        self,
        framework: Framework,
        members: Sequence[Member],
        results: Mapping[AnyKey, GroupResult],
        result: GroupResult,
        turns: CycleMeter,
    ) -> None:
        for group, of_group in by_group(members).items():
            await self.submission.submit(framework, of_group, results.get(group, result), turns)

    def _results(self, key: AnyKey, result: GroupResult) -> dict[AnyKey, GroupResult]:
        """The result of each group of a tree, of a pod group alone its own."""
        root = self.trees.get(key)
        if isinstance(key, GroupKey) or root is None or self.ground.counting is None:
            return {key: result}
        return dict(TreeResults(self.trees, self.ground.counting, result).every(root))

    def _tell(self, key: AnyKey, result: GroupResult) -> None:
        for group in self._results(key, result):
            self.conditions.tell(group, result)

    def _begun(self, infos: Sequence[QueuedPodInfo], profile: str) -> list[Member]:
        """The attempts at those pods that are still to be scheduled."""
        members: list[Member] = []
        failure = self.submission.failure
        for info in infos:
            if skipped(info.pod, self.ground.cache, failure.recorder):
                self.queue.done(info.pod.uid)
            else:
                members.append(Member(info, self.submission.attempts.begin(info, profile)))
        return members

    def _fail_all(self, infos: Sequence[QueuedPodInfo], text: str) -> None:
        for info in infos:
            record = self.submission.attempts.begin(info, info.pod.spec.scheduler_name)
            self.submission.fail(Member(info, record), failed(text), CLEAR_NOMINATION)

    async def decide(self, question: GroupQuestion) -> GroupResult:
        """The algorithm's result; whatever breaks in it costs this group its attempt and no other pod."""
        try:
            self.ground.cache.update_snapshot(self.ground.snapshot)
        except Exception as error:
            log.exception("pod-group cycle broke off group=%s", question.key)
            return GroupResult(failed(error))
        return await self.decide_on_trials(question)

    async def decide_on_trials(self, question: GroupQuestion) -> GroupResult:
        """The same on the snapshot as it is, with trials of the caller's on it."""
        started = self.clock.monotonic()
        try:
            result = await self._algorithm(question)
            self.metrics.decided(self.clock.monotonic() - started)
            return self._completed(await self._with_preemption(question, result), result.status)
        except OverBudgetError as error:
            return GroupResult(failed(error))
        except Exception as error:
            log.exception("pod-group cycle broke off group=%s", question.key)
            return GroupResult(failed(error))

    async def _algorithm(self, question: GroupQuestion) -> GroupResult:
        root, counting = self.trees.get(question.key), self.ground.counting
        if isinstance(question.key, TreeKey) and root is not None and counting is not None:
            result = await self._tree(question, root, counting)
        elif self.features.topology_aware:
            result = await try_placements(
                self.ground, question, self.chance, clock=self.clock, metrics=self.metrics
            )
        else:
            result = await try_as_planned(self.ground, question)
        if self.ground.counting is not None:
            self.ground.counting.whole(result)
        return result

    async def _tree(self, question: GroupQuestion, root: AnyGroup, counting: Counting) -> GroupResult:
        """The tree's result; where pods are left without a node, also without plans, and the better of both.

        Groups that are planned one after the other may leave the next one too little.
        """
        result = await self._tree_once(question, root, counting)
        if result.broken or len(result.assignments) == len(question.members) or not plans(question):
            return result
        other = await self._tree_once(msgspec.structs.replace(question, one_by_one=True), root, counting)
        return other if _worth(other) > _worth(result) else result

    async def _tree_once(self, question: GroupQuestion, root: AnyGroup, counting: Counting) -> GroupResult:
        ground, chance = self.ground, self.chance
        trial = TreeTrial(ground, question, self.trees, counting, chance, self.clock, self.metrics)
        return of_tree(await trial.run(root))

    def _completed(self, result: GroupResult, decided: Status) -> GroupResult:
        """The result with what came of the group before preemption, and what its pods are rejected with."""
        counting = self.ground.counting
        if counting is None or not decided.rejected:
            return replace(result, decided=decided)
        return replace(
            result, decided=decided, of_untried=decided, of_placed=counting.of_placed(result.status)
        )

    async def _with_preemption(self, question: GroupQuestion, result: GroupResult) -> GroupResult:
        """The result once the group may have made room for itself; no pod is evicted for a group twice.

        Nor is any for one that could free devices of its own: it is tried with these first.
        """
        unschedulable = result.status.code is Code.UNSCHEDULABLE and not result.waits_on_preemption
        if unschedulable and self.ground.counting is not None:
            released = await release_for(question.framework, result)
            result = result.because(released.said)
            unschedulable = not released.freed
        if not (self.features.preemption and unschedulable):
            return result
        found = await preempt_for_group(self.ground, question, self.trees, self._algorithm, result)
        if found is None:
            return result
        status = found.status
        if not (status.ok or status.rejected):
            return replace(result, status=status)
        said = result.because([status.message] if status.message else [])
        if not status.ok:
            return said
        return replace(said, waits_on_preemption=True, nominations=found.nominations)


def _worth(result: GroupResult) -> tuple[bool, int]:
    """What makes one result of a tree better than another: that it goes, and how many pods have a node."""
    return result.status.ok, len(result.assignments)
