"""Places the pods of a pod group, all or none, as in a pod-group cycle.

    pods of a group --PreEnqueue--> members --the group's algorithm--> placed, all that may go --> one_by_one
                        |                          |
                        +--------------------------+--> left, with their reasons

Called by: growing_cluster.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from berth.framework.attempts.cycle_budget import UNMETERED
from berth.framework.queueing.queued_pod import QueuedPodInfo, turn_in_group
from berth.framework.runtime import Framework
from berth.framework.status import PluginError, Status, failed
from berth.objects.pods.pod import Pod
from berth.pod_groups.group_algorithm import GroupQuestion
from berth.pod_groups.group_cycle import PodGroupCycle
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.members import Member, profile_of, turn_of
from berth.pod_groups.submission import failure_of
from berth.simulation.placing.one_by_one import Left, OneByOne, Placed
from berth.simulation.running.engine import Simulation
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates, group_of


class GroupOutcome(NamedTuple):
    """The result for a group's pods.

    `room` counts the pods without a node for which one was found, but not for all of the group.
    """

    placed: Sequence[Placed]
    left: Sequence[Left]
    room: int = 0


class GroupPlacing:
    """Places groups in a finished simulation, without preemption."""

    def __init__(self, simulation: Simulation, one_by_one: OneByOne) -> None:
        self._core = simulation.core
        self._one_by_one = one_by_one
        cycle = simulation.core.schedule_one.groups
        self._cycle: PodGroupCycle | None = None
        if isinstance(cycle, PodGroupCycle):
            self._cycle = msgspec.structs.replace(
                cycle, features=msgspec.structs.replace(cycle.features, preemption=False)
            )
        self._known: Sequence[Pod] = ()

    def key_of(self, pod: Pod) -> GroupKey | None:
        """The pod's group; None where it is scheduled alone, as are all without the gate GenericWorkload."""
        return None if self._cycle is None else group_of(pod)

    def know(self, pods: Sequence[Pod]) -> None:
        """Set the pods of groups: these, and those that run."""
        if self._cycle is not None:
            for pod in self._known:
                self._cycle.states.delete(pod)
            for pod in pods:
                self._cycle.states.add(pod)
            self._known = pods

    async def place(self, key: GroupKey, pods: Sequence[Pod]) -> GroupOutcome:
        """Schedule the pods of one group; pods that get a node are assumed from now on."""
        cycle = self._cycle
        assert cycle is not None, "the pods have a group"
        gated, waiting = self._gated(pods)
        if not waiting:
            return GroupOutcome((), gated)
        try:
            question = self._question(cycle, key, waiting)
        except PluginError as error:
            return GroupOutcome((), [*gated, *_left(waiting, failed(str(error)))])
        result = await cycle.decide(question)
        outcome = await self._carried_out(question.framework, question.members, result)
        return outcome._replace(left=[*gated, *outcome.left])

    async def tried(self, key: GroupKey, pods: Sequence[Pod]) -> list[Pod]:
        """The pods of a group that would get a node, on top of the caller's trials; none is assumed."""
        cycle = self._cycle
        assert cycle is not None, "the pods have a group"
        _, waiting = self._gated(pods)
        if not waiting:
            return []
        try:
            question = self._question(cycle, key, waiting)
        except PluginError:
            return []
        result = await cycle.decide_on_trials(question)
        found = ((one.pod, result.members.get(one.pod.uid)) for one in question.members)
        return [
            pod.placed_on(one.node_name)
            for pod, one in found
            if one is not None and failure_of(result, pod.uid) is None
        ]

    def _question(self, cycle: PodGroupCycle, key: GroupKey, waiting: Sequence[Pod]) -> GroupQuestion:
        """Raises: PluginError where the pods have no profile in common."""
        first, *others = (QueuedPodInfo(pod, self._one_by_one.now) for pod in waiting)
        queued = cycle.queue.groups is not None
        infos = sorted((first, *others), key=turn_in_group)
        if not queued:
            infos = sorted((first, *sorted(others, key=lambda info: info.pod.name)), key=turn_of)
        framework = cycle.validated(key, waiting) if queued else profile_of(infos, cycle.frameworks)
        attempts = cycle.submission.attempts
        members = [Member(info, attempts.begin(info, framework.profile_name)) for info in infos]
        return GroupQuestion.of(framework, key, members, cycle.states, UNMETERED)

    def _gated(self, pods: Sequence[Pod]) -> tuple[list[Left], list[Pod]]:
        """The pods that a PreEnqueue plugin gates, and the others."""
        gated: list[Left] = []
        waiting: list[Pod] = []
        for pod in pods:
            plugins = self._core.profiles.queue_profiles[pod.spec.scheduler_name].pre_enqueue
            verdicts = (plugin.pre_enqueue(pod) for plugin in plugins)
            held = next((each for each in verdicts if isinstance(each, Status) and not each.ok), None)
            if held is None:
                waiting.append(pod)
            else:
                gated.append(Left(pod, held))
        return gated, waiting

    async def _carried_out(
        self, framework: Framework, members: Sequence[Member], result: GroupResult
    ) -> GroupOutcome:
        placed: list[Placed] = []
        left: list[Left] = []
        for member in members:
            one = result.members.get(member.pod.uid)
            failure = failure_of(result, member.pod.uid)
            if one is None or failure is not None:
                left.append(Left(member.pod, result.status if failure is None else failure[0]))
                continue
            # Reservations from now on are made in the cluster, not in a trial.
            one.attempt.state.delete(PodGroupStates)
            here = Placed(member.pod.placed_on(one.node_name), framework, one.attempt.state, member.record)
            status = await self._one_by_one.keep(here)
            if not status.ok:
                for each in reversed(placed):
                    await self._one_by_one.take_back(each)
                return GroupOutcome((), _left((each.pod for each in members), status))
            placed.append(here)
        room = 0 if placed else result.room or len(result.assignments)
        return GroupOutcome(placed, left, room)


def _left(pods: Iterable[Pod], status: Status) -> list[Left]:
    return [Left(pod, status) for pod in pods]
