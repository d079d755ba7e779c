"""The algorithm for a tree of groups: each group within a placement of the one above it.

    CompositePodGroup: for each placement: child after child -> the best placement, held for the siblings
        |                                      |
        +---- recursion -----------------------+-- PodGroup: the algorithm of groups, its pods held

What is held stands in the snapshot until the whole tree has been tried; then all is taken back, the last pod
first. A tree succeeds by how many of its groups do.

Source: pkg/scheduler/schedule_one_podgroup.go compositePodGroupSchedulingAlgorithm (Kubernetes v1.37),
algorithm_podgroup.go (v1.38); KEP-6012.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from berth.evaluation.points.placement_plugins import run_generate
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import Clock
from berth.framework.interface import Placement, PlacementProgress
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of
from berth.framework.status import Status, failed
from berth.objects.pods.pod import Pod
from berth.pod_groups.counting import Counting
from berth.pod_groups.group_algorithm import (
    GroupPlacementTrial,
    GroupQuestion,
    SchedulingContext,
    state_of,
    try_group,
)
from berth.pod_groups.group_result import Branch, GroupResult
from berth.pod_groups.members import Member
from berth.pod_groups.placement_algorithm import try_placements
from berth.pod_groups.placement_choice import Fitting, chosen_placement
from berth.pod_groups.placement_counts import Counted, RoomCounts, room_for
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.pod_groups.tree_counts import TreeCounts, has_one_leaf
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey, TreeKey, group_of

log = logging.getLogger(__name__)

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
    _states: Mapping[AnyKey, CycleState] = field(init=False)
    _has_one_leaf: bool = field(init=False)
    _held: list[GroupPlacementTrial] = field(default_factory=list)
    _known: TreeCounts | None = None
    """Counts by the room that was found for the first group: with one pod group nothing is held before it."""

    def __post_init__(self) -> None:
        self._members = by_group(self.question.members)
        states, meter = self.question.states, self.question.meter
        self._states = {key: state_of(members, states, meter) for key, members in self._members.items()}
        root = self.trees.get(self.question.key)
        self._has_one_leaf = root is not None and has_one_leaf(self.trees, root)

    async def run(self, root: AnyGroup) -> Branch:
        """What came of the tree; the snapshot is in the end as it was."""
        try:
            return await self._try(root, None)
        finally:
            await self._back_to(0)

    def _of_leaf(self, key: AnyKey, within: Rows | None = None) -> GroupQuestion:
        """The question about a pod group of the tree."""
        return msgspec.structs.replace(
            self.question,
            key=key,
            members=self._members.get(key, []),
            state=self._states.get(key, self.question.state),
            within=within,
            in_tree=True,
        )

    async def _try(self, group: AnyGroup, within: Rows | None) -> Branch:
        key = key_of(group)
        if isinstance(key, TreeKey):
            return await self._composite(group, key, within)
        question = self._of_leaf(key, within)
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
        """Put the group's pods on the nodes that they found, for groups that are tried after it, if any."""
        if self._has_one_leaf:
            return
        trial = GroupPlacementTrial.of(self.ground, question)
        self._held.append(trial)
        for one in branch.result.members.values():
            if one.node_name and not await trial.hold(one):
                branch.result.status = failed(f"failed to assume the subtree: {one.status.message}")
                return

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
        counts = await self._counts(group, found.placements)
        if counts is not None:
            branch = await self._best_counted(group, state, key, found.placements, counts)
            if branch is not None:
                return branch
            log.warning("tree of groups tried in all placements, as it was miscounted group=%s", key)
        return await self._best_tried(group, state, key, found.placements)

    async def _counts(self, group: AnyGroup, placements: Sequence[Placement]) -> list[Counted] | None:
        """What trying the group in each placement would come to; None where it has to be tried."""
        if len(placements) < 2 or len(self._members) != 1 or not self._has_one_leaf:  # noqa: PLR2004 - of one there is nothing to choose
            return None
        if self._known is None:
            (leaf,) = self._members
            question = self._of_leaf(leaf)
            room = await room_for(self.ground, question)
            if room is None:
                return None
            self._known = TreeCounts(RoomCounts(self.ground, question, room), self.trees, self._verdict)
        return await self._known.in_each(group, placements)

    async def _best_counted(
        self,
        group: AnyGroup,
        state: CycleState,
        key: TreeKey,
        placements: Sequence[Placement],
        counts: Sequence[Counted],
    ) -> Branch | None:
        """The branch of the best placement by counts, the only one that is tried; None if miscounted."""
        pairs = zip(placements, counts, strict=True)
        fitting = [(placement, count.assignments) for placement, count in pairs if count.fits]
        if not fitting:
            first = await self._children(group, key, placements[0])
            return None if first.result.status.ok else self._nowhere(first, len(placements))
        chosen = await self._chosen(state, key, fitting)
        if isinstance(chosen, GroupResult):
            return Branch(group, chosen)
        mark, (placement, counted_pods) = len(self._held), fitting[chosen]
        branch = await self._children(group, key, placement)
        if branch.result.broken or len(assignments(branch)) == len(counted_pods):
            return branch
        await self._back_to(mark)
        return None

    async def _best_tried(
        self, group: AnyGroup, state: CycleState, key: TreeKey, placements: Sequence[Placement]
    ) -> Branch:
        mark = len(self._held)
        tried: list[tuple[Placement, Branch]] = []
        for placement in placements:
            await self._back_to(mark)
            branch = await self._children(group, key, placement)
            if branch.result.broken:
                return branch
            tried.append((placement, branch))
        fitting = [(placement, branch) for placement, branch in tried if branch.result.status.ok]
        if not fitting:
            return self._nowhere(tried[0][1], len(tried))
        if len(tried) == 1:
            return tried[0][1]
        await self._back_to(mark)
        chosen = await self._chosen(
            state, key, [(placement, assignments(branch)) for placement, branch in fitting]
        )
        if isinstance(chosen, GroupResult):
            return Branch(group, chosen)
        return await self._hold_again(fitting[chosen][1])

    def _nowhere(self, first: Branch, placements: int) -> Branch:
        if self.counting.names_plugins and not first.result.broken:
            first.result.status = self.counting.nowhere(first.result.status, placements)
        return first

    async def _children(self, group: AnyGroup, key: TreeKey, placement: Placement) -> Branch:
        """The group within one placement; it holds what it needs where it succeeds."""
        mark, children = len(self._held), self.trees.children(key)
        everywhere = placement.rows.size == len(self.ground.snapshot)
        branch = Branch(group, GroupResult())
        branch.result.status, goes_on = await self._verdict(key, len(children), 0, tried=False)
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
            branch.result.status, goes_on = await self._verdict(key, left, scheduled, tried=True)
        if not branch.result.status.ok:
            await self._back_to(mark)
        return branch

    async def _verdict(
        self, key: TreeKey, left: int, scheduled: int, *, tried: bool = True
    ) -> tuple[Status, bool]:
        progress, question = PlacementProgress(left, scheduled), self.question
        return await self.counting.verdict(question.framework, question.state, key, progress, tried=tried)

    async def _chosen(self, state: CycleState, key: TreeKey, fitting: Sequence[Fitting]) -> int | GroupResult:
        """Which of several placements scores highest, by its place among them."""
        question, nodes = msgspec.structs.replace(self.question, key=key), self.ground.snapshot
        return await chosen_placement(
            question, nodes, state, fitting, chance=self.chance, phase_name=PLACEMENTS
        )

    async def _hold_again(self, branch: Branch) -> Branch:
        """Hold the pod groups of a branch that was tried and taken back."""
        for leaf in branch.placed():
            await self._hold(leaf, self._of_leaf(leaf.key))
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
