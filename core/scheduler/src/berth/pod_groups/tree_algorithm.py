"""The algorithm for a tree of groups: each group within a placement of the one above it.

    CompositePodGroup: for each placement: child after child -> the best placement, held for the siblings
        |                                      |
        +---- recursion -----------------------+-- PodGroup: the algorithm of groups, its pods held

What is held stands in the snapshot until the whole tree has been tried; then all is taken back, the last pod
first. A tree succeeds by how many of its groups do.

Source: pkg/scheduler/schedule_one_podgroup.go compositePodGroupSchedulingAlgorithm (Kubernetes v1.37),
algorithm_podgroup.go (v1.38); KEP-6012.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from berth.evaluation.points.placement_plugins import run_generate, run_placement_scores
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import Clock
from berth.framework.interface import Placement, PlacementProgress, ProposedPlacement
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of
from berth.framework.status import PluginError, Status, failed
from berth.objects.pods.pod import Pod
from berth.pod_groups.counting import Counting
from berth.pod_groups.group_algorithm import GroupPlacementTrial, GroupQuestion, SchedulingContext, try_group
from berth.pod_groups.group_result import Branch, GroupResult
from berth.pod_groups.members import Member
from berth.pod_groups.placement_algorithm import try_placements
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey, TreeKey, group_of

PLACEMENTS = "composite pod group placements"


@dataclass(slots=True)
class TreeTrial:
    """Tries one tree; `question` is about the root, with the waiting pods of all its pod groups."""

    ground: SchedulingContext
    question: GroupQuestion
    trees: GroupTrees
    counting: Counting
    chance: random.Random
    clock: Clock
    metrics: PodGroupMetrics
    _members: Mapping[AnyKey, list[Member]] = field(init=False)
    _held: list[GroupPlacementTrial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._members = by_group(self.question.members)

    async def run(self, root: AnyGroup) -> Branch:
        """What came of the tree; the snapshot is in the end as it was."""
        try:
            return await self._try(root, None)
        finally:
            await self._back_to(0)

    async def _try(self, group: AnyGroup, within: Rows | None) -> Branch:
        key = key_of(group)
        if isinstance(key, TreeKey):
            return await self._composite(group, key, within)
        question = replace(
            self.question, key=key, members=self._members.get(key, []), within=within, in_tree=True
        )
        if not question.members:
            return Branch(group, await try_group(self.ground, question))
        result = await try_placements(
            self.ground, question, self.chance, clock=self.clock, metrics=self.metrics
        )
        branch = Branch(group, result)
        if result.status.ok:
            await self._hold(branch, question)
        return branch

    async def _hold(self, branch: Branch, question: GroupQuestion) -> None:
        """Put the group's pods on the nodes that they found, for the groups that are tried after it."""
        trial = GroupPlacementTrial.of(self.ground, question)
        self._held.append(trial)
        members = {member.pod.uid: member for member in question.members}
        for pod, node_name in branch.result.assignments:
            row = self.ground.snapshot.row_of[node_name]
            await trial.go_on_with(members[pod.uid], np.array([row]))
            one = trial.result.members[pod.uid]
            if not one.node_name:
                branch.result.status = failed(f"failed to assume the subtree: {one.status.message}")
                return
            branch.result.members[pod.uid] = one

    async def _back_to(self, many: int) -> None:
        """Take back what is held but for so many groups."""
        while len(self._held) > many:
            await self._held.pop().keep(0)

    async def _composite(self, group: AnyGroup, key: TreeKey, within: Rows | None) -> Branch:
        framework, snapshot = self.question.framework, self.ground.snapshot
        state, record = CycleState(), self.question.record_of(self.question.members[0])
        state.write(CycleRecord, record)
        phase = record.begin_phase(PLACEMENTS)
        found = await run_generate(framework, state, key, snapshot, within)
        record.end(phase, found.status)
        if not found.status.ok:
            return Branch(group, GroupResult(found.status))
        mark = len(self._held)
        tried: list[tuple[Placement, Branch]] = []
        for placement in found.placements:
            await self._back_to(mark)
            branch = await self._children(group, key, placement)
            if branch.result.broken:
                return branch
            tried.append((placement, branch))
        fitting = [(placement, branch) for placement, branch in tried if branch.result.status.ok]
        if not fitting:
            first = tried[0][1]
            if self.counting.names_plugins:
                first.result.status = self.counting.nowhere(first.result.status, len(tried))
            return first
        if len(tried) == 1:
            return tried[0][1]
        await self._back_to(mark)
        return await self._hold_again(await self._best(state, key, fitting))

    async def _children(self, group: AnyGroup, key: TreeKey, placement: Placement) -> Branch:
        """The group within one placement; it holds what it needs where it succeeds."""
        mark, children = len(self._held), self.trees.children(key)
        everywhere = placement.rows.size == len(self.ground.snapshot)
        branch = Branch(group, GroupResult())
        branch.result.status, goes_on = self._verdict(key, len(children), 0, tried=False)
        scheduled = 0
        for number, child in enumerate(children):
            if not goes_on:
                break
            below = await self._try(child, None if everywhere else placement.rows)
            branch.children.append(below)
            if below.result.broken:
                text = (
                    f"composite pod group evaluation failed due to child error: {below.result.status.message}"
                )
                branch.result.status = failed(text)
                break
            scheduled += below.result.status.ok
            if self.question.meter.worked("a tree of groups"):
                await self.question.meter.breathe()
            left = len(children) - number - 1
            branch.result.status, goes_on = self._verdict(key, left, scheduled, tried=True)
        if not branch.result.status.ok:
            await self._back_to(mark)
        return branch

    def _verdict(self, key: TreeKey, left: int, scheduled: int, *, tried: bool) -> tuple[Status, bool]:
        progress = PlacementProgress(left, scheduled)
        return self.counting.verdict(self.question.framework, key, progress, tried=tried)

    async def _best(
        self, state: CycleState, key: TreeKey, fitting: Sequence[tuple[Placement, Branch]]
    ) -> Branch:
        """The branch of the placement that scores highest."""
        if len(fitting) == 1:
            return fitting[0][1]
        proposed = [ProposedPlacement(placement, assignments(branch)) for placement, branch in fitting]
        record = state.read(CycleRecord)
        phase = record.begin_phase(PLACEMENTS)
        try:
            totals = await run_placement_scores(
                self.question.framework, state, key, self.ground.snapshot, proposed
            )
        except PluginError as error:
            return Branch(fitting[0][1].group, GroupResult(failed(error)))
        finally:
            record.end(phase)
        best = np.flatnonzero(totals == totals.max())
        return fitting[int(best[self.chance.randrange(best.size)])][1]

    async def _hold_again(self, branch: Branch) -> Branch:
        """Hold the pod groups of a branch that was tried and taken back."""
        for leaf in branch.placed():
            members = self._members.get(leaf.key, [])
            question = replace(self.question, key=leaf.key, members=members, in_tree=True)
            await self._hold(leaf, question)
            if leaf.result.broken:
                branch.result.status = leaf.result.status
                break
        return branch


def by_group(members: Sequence[Member]) -> dict[AnyKey, list[Member]]:
    """The members of each pod group, in the order in which they come."""
    found: dict[AnyKey, list[Member]] = {}
    for member in members:
        key = group_of(member.pod)
        assert key is not None, "only pods of groups are tried with a tree"
        found.setdefault(key, []).append(member)
    return found


def assignments(branch: Branch) -> list[tuple[Pod, str]]:
    """The pods that would be placed below the group, and where."""
    return [one for leaf in branch.placed() for one in leaf.result.assignments]
