"""Making a group's result true: pods are assumed and bound, or go back to the queue.

Source: pkg/scheduler/schedule_one_podgroup.go submitPodGroupAlgorithmResult (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec

from berth.cycle.assume_and_bind import AssumeAndBind
from berth.cycle.attempts import Attempts
from berth.cycle.failure import FailureHandler
from berth.cycle.schedule_one import SCHEDULING_CYCLE
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.clock import nanoseconds
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo, NominatingMode
from berth.framework.runtime import Framework
from berth.framework.status import Status
from berth.pod_groups.group_result import GroupResult, MemberResult, group_unschedulable
from berth.pod_groups.members import Member
from berth.snapshot.pod_group_states import PodGroupStates

Failure = tuple[Status, NominatingInfo | None]


class Submission(msgspec.Struct, frozen=True):
    """Hands in one group's result after the other."""

    commit: AssumeAndBind
    failure: FailureHandler
    attempts: Attempts

    async def submit(
        self, framework: Framework, members: Sequence[Member], result: GroupResult, turns: CycleMeter
    ) -> None:
        """Commit the pods that may go, one after the other, and give all others back to the queue.

        Between two of them everything else has its turn: a group may have thousands.
        """
        for member in members:
            await turns.turn()
            one = result.members.get(member.pod.uid)
            if one is not None:
                member.record.paused_ns = nanoseconds() - member.record.dequeued_ns - one.algorithm_ns
            failure = failure_of(result, member.pod.uid)
            if failure is not None:
                self.fail(member, *failure)
            elif one is not None:
                await self._bind(framework, member, one)

    def fail(self, member: Member, status: Status, nominating: NominatingInfo | None) -> None:
        """Give the pod back to the queue."""
        self.failure.handle(member.info, status, nominating)
        self.attempts.end(member.record, status)

    async def _bind(self, framework: Framework, member: Member, one: MemberResult) -> None:
        """Do in the cache what was tried in the snapshot; Permit counts what is really there from now on."""
        one.attempt.state.delete(PodGroupStates)
        phase = member.record.begin_phase(SCHEDULING_CYCLE)
        await self.commit.commit_in_turn(framework, one.attempt, member.info, one.node_name, phase)


def failure_of(result: GroupResult, uid: str) -> Failure | None:
    """What a pod fails with, and what becomes of its nomination; None for a pod that may go.

    A pod that was not tried shares its group's status.
    """
    group, one = result.status, result.members.get(uid)
    if result.broken:
        broke_itself = one is not None and not (one.node_name or one.status.rejected)
        return one.status if one is not None and broke_itself else group, CLEAR_NOMINATION
    nominated = result.nominations.get(uid)
    if one is None:
        return result.of_untried or group, nominated
    if not one.node_name or (result.waits_on_preemption and one.requires_preemption):
        return one.status, nominated or one.nominating_info
    if result.waits_on_preemption:
        return group, nominated or _to_its_node(result, one)
    if group.ok and not one.requires_preemption:
        return None
    return result.of_placed or group_unschedulable(*one.permit.reasons), CLEAR_NOMINATION


def _to_its_node(result: GroupResult, one: MemberResult) -> NominatingInfo | None:
    """Where a pod is nominated that found a node, as others of its group wait for room.

    From 1.37 on to none: where the group will be, preemption alone says (kubernetes/kubernetes#140590).
    """
    return None if result.of_placed else NominatingInfo(NominatingMode.OVERRIDE, one.node_name)
