"""How many pods of a group find a node in each of its placements, without trying it in each.

Equal pods that plugins look at node by node fill a placement up to the sum of what its nodes take, whichever
of them each pod goes to. So such a group is tried in the placement that it goes to, and nowhere else; the
decision is the one that comes of trying it in each.

    room of each node --summed by placement--> pods placed --PlacementFeasible, Permit--> where the group fits
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.group_plans import PodGroupPlanPlugin
from berth.framework.interface import Placement, PlacementProgress
from berth.objects.pods.pod import Pod
from berth.plugins.gang_scheduling import GangScheduling
from berth.plugins.in_tree import InTreePlugin
from berth.pod_groups.group_algorithm import GroupQuestion, SchedulingContext
from berth.snapshot.columns.growing import Ints
from berth.snapshot.pod_group_states import PodGroupStates


class Counted(msgspec.Struct, frozen=True):
    """What trying the group in one placement would come to: whether it fits, and with which pods placed.

    Of the pods' nodes nothing is known: their names are empty.
    """

    fits: bool
    assignments: Sequence[tuple[Pod, str]]


async def counted(
    ground: SchedulingContext, question: GroupQuestion, placements: Sequence[Placement]
) -> list[Counted | None] | None:
    """One for each placement, None for a placement that has to be tried; None where all have to be."""
    if len(placements) < 2:  # noqa: PLR2004 - of one there is nothing to choose
        return None
    room = await room_for(ground, question)
    return None if room is None else await RoomCounts(ground, question, room).in_each(placements)


async def room_for(ground: SchedulingContext, question: GroupQuestion) -> Ints | None:
    """How many of the group's pods each node takes; None where only trying them tells.

    Shapes: result int64 (n,). Raises: OverBudgetError.
    """
    equal, pods = ground.equal_pods, [member.pod for member in question.members]
    if equal is None or not _depends_on_counts(question):
        return None
    if not equal.countable(question.framework, pods):
        return None
    state, record = CycleState(question.meter), replace(question.members[0].record, intervals=[])
    state.skip_post_filter = True
    state.write(CycleRecord, record)
    state.write(PodGroupStates, question.states)
    attempt = Attempt(pods[0], ground.snapshot, state, record)
    room = await equal.room(question.framework, attempt, len(pods))
    return room if _reserve_has_no_say(question, state) else None


class RoomCounts(msgspec.Struct, frozen=True):
    """Counts a group by the room that each node has for its pods. Shapes: room int64 (n,)."""

    ground: SchedulingContext
    question: GroupQuestion
    room: Ints
    _known: dict[int, Counted | None] = msgspec.field(default_factory=dict)
    """By how many pods are placed."""

    async def in_each(self, placements: Sequence[Placement]) -> list[Counted | None]:
        """One for each placement, None for a placement that has to be tried."""
        members = self.question.members
        placed = np.minimum(_sums(self.room, placements), len(members)).tolist()
        for many in set(placed) - self._known.keys():
            assignments = [(member.pod, "") for member in members[:many]]
            self._known[many] = await _judged(self.ground, self.question, assignments)
        return [self._known[many] for many in placed]


def _depends_on_counts(question: GroupQuestion) -> bool:
    """Whether what plugins say of groups and placements depends on no more than how many pods are placed.

    Another PlacementFeasible plugin than GangScheduling may end an attempt early.
    """
    plugins, judges = question.framework.plugins, question.framework.placement_feasible
    planned = any(isinstance(plugin, PodGroupPlanPlugin) for plugin in plugins.pre_filter)
    return (
        not (planned or question.plan is not None)
        and all(isinstance(plugin, GangScheduling) or not plugin.judges_groups() for plugin in judges)
        and not any(plugin.reads_nodes for plugin, _ in plugins.placement_score)
    )


def _reserve_has_no_say(question: GroupQuestion, state: CycleState) -> bool:
    """Whether all Reserve plugins are upstream's, and skipped the pods before they were filtered."""
    plugins = question.framework.plugins.reserve
    return all(isinstance(plugin, InTreePlugin) and plugin.name in state.skip_filter for plugin in plugins)


def _sums(room: Ints, placements: Sequence[Placement]) -> Ints:
    """The room in each placement. Shapes: room int64 (n,); result int64 (k,)."""
    sizes = np.array([each.rows.size for each in placements], dtype=np.intp)
    some = sizes > 0
    sums = np.zeros(sizes.size, dtype=np.int64)
    if some.any():
        rows = np.concatenate([each.rows for each in placements])
        sums[some] = np.add.reduceat(room[rows], (np.cumsum(sizes) - sizes)[some])
    return sums


async def _judged(
    ground: SchedulingContext, question: GroupQuestion, assignments: Sequence[tuple[Pod, str]]
) -> Counted | None:
    """The group with these pods placed, its first ones, and no other."""
    scheduled = question.states.known(question.key).scheduled_count
    counting = ground.counting
    if counting is None:
        return _permitted(question, assignments, scheduled)
    framework, state, key = question.framework, question.state, question.key
    before = PlacementProgress(len(question.members), scheduled)
    if not (await counting.verdict(framework, state, key, before, tried=False))[1]:
        return Counted(fits=False, assignments=())
    after = PlacementProgress(0, scheduled + len(assignments))
    status, _ = await counting.verdict(framework, state, key, after, tried=True)
    return Counted(status.ok, assignments)


def _permitted(
    question: GroupQuestion, assignments: Sequence[tuple[Pod, str]], scheduled: int
) -> Counted | None:
    """Up to 1.36: what Permit says of the last pod. A pod that fits nowhere may preempt, so it is tried."""
    every = question.framework.plugins.permit
    plugins = [plugin for plugin in every if isinstance(plugin, GangScheduling)]
    if len(assignments) < len(question.members) or len(plugins) < len(every):
        return None
    if not plugins:
        return Counted(fits=True, assignments=assignments)
    group = plugins[0].handle.listers.trees.get(question.key)
    if group is None:
        return None
    return Counted(scheduled + len(assignments) >= group.needed, assignments)
