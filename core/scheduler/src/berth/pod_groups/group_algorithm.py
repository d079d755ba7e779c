"""The default algorithm: the group's pods one after the other, each seeing the ones before on their nodes.

    for each pod:  decide -> place in the snapshot -> Reserve -> enough of them placed? (up to 1.36: Permit)
    in the end:    everything taken back, the last pod first

Nothing of it is seen outside the snapshot; what is decided here, `submission.py` makes true.

Source: pkg/scheduler/schedule_one_podgroup.go podGroupSchedulingDefaultAlgorithm (Kubernetes v1.36).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from berth.binding.binding_cycle import rejected_on
from berth.cache.cache import Cache
from berth.cycle.schedule_one import SCHEDULING_CYCLE
from berth.cycle.schedule_pod import Decision, PodAlgorithm, guarded_decision
from berth.evaluation.equal_pods import EqualPods
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import FitError
from berth.framework.clock import nanoseconds
from berth.framework.group_plans import GroupPlan
from berth.framework.interface import CLEAR_NOMINATION, NominatingMode, PlacementProgress
from berth.framework.runtime import Framework
from berth.framework.status import Code, Status, failed
from berth.objects.pods.pod import Pod
from berth.pod_groups.counting import Counting
from berth.pod_groups.group_result import GroupResult, MemberResult
from berth.pod_groups.members import Member
from berth.pod_groups.plan_memory import PlanMemory
from berth.queue.pools.nominator import Nominator
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey, PodGroupStates
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

ROUNDS = 4
"""How often a pod is tried at most that others of its group may have to come before."""


class SchedulingContext(msgspec.Struct, frozen=True):
    """What groups are tried on: the snapshot of the cycle, who is nominated where, and known plans.

    With `counting` a group is judged by how many of its pods are placed, else by what Permit says of each.
    With `equal_pods` the equal pods of a group are counted in all placements, and tried in one.
    """

    cache: Cache
    snapshot: Snapshot
    nominator: Nominator
    algorithm: PodAlgorithm
    plans: PlanMemory
    counting: Counting | None = None
    equal_pods: EqualPods | None = None


class GroupQuestion(msgspec.Struct, frozen=True):
    """Whether these pods of a group fit together, `within` these rows (None: anywhere).

    `states` says which pods the group has; a trial works on its own copy. A simulation leaves out PostFilter
    plugins and keeps the pods' records clean. A `plan` is left in each pod's state. A `thorough` one tries
    all pods, also where the group is turned down whatever comes of the last ones. With `one_by_one` no plan
    is made. `state` is what plugins remember of the group in this attempt, in all its placements.
    """

    framework: Framework
    key: AnyKey
    members: Sequence[Member]
    states: PodGroupStates
    meter: CycleMeter
    state: CycleState
    within: Rows | None = None
    simulated: bool = False
    thorough: bool = False
    plan: GroupPlan | None = None
    one_by_one: bool = False
    in_tree: bool = False
    """Whether the group is tried as one of a tree."""

    @classmethod
    def of(
        cls,
        framework: Framework,
        key: AnyKey,
        members: Sequence[Member],
        states: PodGroupStates,
        meter: CycleMeter,
    ) -> "GroupQuestion":
        """The question that an attempt at the group begins with."""
        return cls(framework, key, members, states, meter, state_of(members, states, meter))

    def record_of(self, member: Member) -> CycleRecord:
        """Where it is noted what is asked about the member; of a simulation nothing stays."""
        return replace(member.record, intervals=[]) if self.simulated else member.record


def state_of(members: Sequence[Member], states: PodGroupStates, meter: CycleMeter) -> CycleState:
    """A state for an attempt at these pods as a group, with the record of the first of them."""
    state = CycleState(meter)
    state.write(PodGroupStates, states)
    if members:
        state.write(CycleRecord, members[0].record)
    return state


async def try_group(ground: SchedulingContext, question: GroupQuestion) -> GroupResult:
    """Try the group's pods; the snapshot is in the end as it was."""
    trial = GroupPlacementTrial.of(ground, question)
    try:
        await trial.judge()
        for member in question.members:
            if (trial.hopeless and not question.thorough) or not await trial.go_on_with(member):
                break
            # A large group takes seconds: bindings, watches and the lease do not wait for its end.
            if question.meter.worked("a pod group"):
                await question.meter.breathe()
        return trial.result
    finally:
        await trial.keep(0)


class _Placed(msgspec.Struct, frozen=True):
    """A pod that stands on a node for the time of the trial; `trials` stood before it did."""

    one: MemberResult
    assumed: Pod
    trials: int


@dataclass(slots=True)
class GroupPlacementTrial:
    """Pods of a group placed one after the other in the snapshot; the caller takes them back.

    `attempts` counts how often a pod was tried.
    """

    ground: SchedulingContext
    question: GroupQuestion
    states: PodGroupStates
    result: GroupResult = field(default_factory=GroupResult)
    attempts: int = 0
    hopeless: bool = field(default=False, init=False)
    """Whether the group is turned down, however many of the pods that are left can be placed."""
    _placed: list[_Placed] = field(default_factory=list)
    _requires_preemption: bool = False

    @classmethod
    def of(cls, ground: SchedulingContext, question: GroupQuestion) -> "GroupPlacementTrial":
        """A trial that has not begun."""
        return cls(ground, question, question.states.copy_of(question.key))

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The pods that stand, by UID, and their nodes, in the order in which they were placed."""
        return [(here.assumed.uid, here.assumed.node_name) for here in self._placed]

    async def go_on(self, members: Sequence[Member], followers: AbstractSet[str]) -> None:
        """Try each of them; a follower that fits nowhere yet again, once others were placed, a few times.

        `followers` are UIDs. The result has the pods in the order in which they were placed.
        """
        for _ in range(ROUNDS):
            before = len(self._placed)
            members = [one for one in await self._go_round(members) if one.pod.uid in followers]
            if not members or self.result.broken or len(self._placed) == before:
                break

    async def _go_round(self, members: Sequence[Member]) -> list[Member]:
        """Try each of them; those that were not placed."""
        left: list[Member] = []
        for member in members:
            self.result.members.pop(member.pod.uid, None)
            if not await self.go_on_with(member):
                break
            if not self.result.members[member.pod.uid].node_name:
                left.append(member)
            if self.question.meter.worked("a pod group"):
                await self.question.meter.breathe()
        return left

    async def go_on_with(self, member: Member, within: Rows | None = None) -> bool:
        """Try one more pod, within these rows if any are given; False where that breaks the whole."""
        started = nanoseconds()
        self.attempts += 1
        attempt = self._attempt(member, self.question.within if within is None else within)
        phase = attempt.record.begin_phase(SCHEDULING_CYCLE)
        decision = await guarded_decision(self.ground.algorithm, self.question.framework, attempt)
        if self.ground.counting is not None and isinstance(decision.status.error, FitError):
            # No plugin was to make room for one pod, which is no part of why it does not fit.
            decision.status.error.diagnosis.post_filter_message = ""
        one = self.result.members[member.pod.uid] = _as_decided(attempt, decision)
        if one.node_name:
            await self._place(one)
        attempt.record.end(phase, one.status)
        one.algorithm_ns = nanoseconds() - started
        if not (one.node_name or one.status.rejected):
            self.result.broke(one.status)
            return False
        await self.judge()
        return not self.result.broken

    async def hold(self, one: MemberResult) -> bool:
        """Put a pod again on the node that it found before; False where it cannot stay there any more."""
        self.result.members[one.attempt.pod.uid] = one
        await self._place(one)
        return bool(one.node_name)

    async def judge(self) -> None:
        """Say of the group what the pods mean for it that are placed now, where these are counted."""
        counting, question = self.ground.counting, self.question
        if counting is None:
            return
        tried = len(self.result.members)
        scheduled = self.states.known(question.key).scheduled_count
        progress = PlacementProgress(len(question.members) - tried, scheduled)
        self.result.status, goes_on = await counting.verdict(
            question.framework, question.state, question.key, progress, tried=tried > 0
        )
        self.hopeless = not goes_on

    def _attempt(self, member: Member, within: Rows | None) -> Attempt:
        record, state = self.question.record_of(member), CycleState(self.question.meter)
        state.skip_post_filter = self.question.simulated or self.ground.counting is not None
        state.write(CycleRecord, record)
        state.write(PodGroupStates, self.states)
        if self.question.plan is not None:
            state.write(GroupPlan, self.question.plan)
        return Attempt(member.pod, self.ground.snapshot, state, record, within)

    async def _place(self, one: MemberResult) -> None:
        """Put the pod on its node; one that cannot stay there has failed."""
        assumed = one.attempt.pod.placed_on(one.node_name)
        here = _Placed(one, assumed, self.ground.cache.trials)
        try:
            self.ground.cache.try_pod(self.ground.snapshot, 1, PodInfo(assumed))
        except KeyError:
            status = failed(f'nodeinfo not found for node name "{one.node_name}"')
        else:
            self.states.assume(assumed)
            self.ground.nominator.delete(one.attempt.pod)
            status = await self._hold(one, assumed)
        if status.ok or status.code is Code.WAIT:
            self._stays(here, status)
        else:
            await self._take_back(here)
            one.status = rejected_on(one.node_name, status) if status.rejected else status
            one.node_name, one.requires_preemption = "", False
            one.nominating_info = CLEAR_NOMINATION

    async def _hold(self, one: MemberResult, assumed: Pod) -> Status:
        """What Reserve says, and Permit where it judges groups."""
        framework, state, record = self.question.framework, one.attempt.state, one.attempt.record
        status = await framework.run_reserve(state, assumed, one.node_name, record)
        if status.ok and self.ground.counting is None:
            status = (await framework.run_permit(state, assumed, one.node_name, record)).status
        return status

    def _stays(self, here: _Placed, permit: Status) -> None:
        here.one.permit = permit
        self._placed.append(here)
        self._count(here.one)

    def _count(self, one: MemberResult) -> None:
        self._requires_preemption |= one.requires_preemption
        if one.permit.ok and self.ground.counting is None:
            self.result.permitted(requires_preemption=self._requires_preemption)

    async def keep(self, many: int) -> None:
        """Take all back but the first so many that were placed, the last pod first; the result is theirs."""
        while len(self._placed) > many:
            await self._take_back(self._placed.pop())
        self.result, self._requires_preemption = GroupResult(), False
        for here in self._placed:
            self.result.members[here.assumed.uid] = here.one
            self._count(here.one)
        await self.judge()

    async def _take_back(self, here: _Placed) -> None:
        attempt, pod = here.one.attempt, here.one.attempt.pod
        await self.question.framework.run_unreserve(
            attempt.state, here.assumed, here.assumed.node_name, attempt.record
        )
        self.ground.cache.undo_trials(self.ground.snapshot, here.trials)
        self.states.forget(here.assumed)
        if pod.nominated_node_name:
            self.ground.nominator.add(pod)


def _as_decided(attempt: Attempt, decision: Decision) -> MemberResult:
    """A pod for which others would have to leave a node goes on as if it were placed there."""
    nominated = decision.nominating_info
    if decision.status.ok or nominated is None or nominated.mode is NominatingMode.NOOP:
        return MemberResult(attempt, decision.status, decision.node_name, nominating_info=nominated)
    return MemberResult(attempt, decision.status, nominated.node_name, bool(nominated.node_name), nominated)
