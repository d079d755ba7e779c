"""How many pods of a tree find a node in each placement of its root, without trying it in each.

For trees with one pod group: it is counted as it would be alone (`placement_counts.py`), within placements of
the groups above it. To which of several it goes within one of the root's is left open, as long as all that it
fits in take the same number of its pods.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec.structs import replace

from berth.evaluation.points.placement_plugins import run_generate
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import Placement, PlacementsResult
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of
from berth.framework.status import Status
from berth.pod_groups.placement_counts import Counted, RoomCounts
from berth.snapshot.columns.growing import Rows
from berth.snapshot.pod_group_states import AnyKey, PodGroupStates, TreeKey

NONE_FITS = Counted(fits=False, assignments=())


class TreeCounts(msgspec.Struct, frozen=True):
    """Counts one tree; `counts` is about its one pod group."""

    counts: RoomCounts
    trees: GroupTrees
    verdict: Callable[[TreeKey, int, int], Awaitable[tuple[Status, bool]]]
    """Of a CompositePodGroup with so many groups below left to be tried, and so many that have a place."""
    _verdicts: dict[tuple[TreeKey, int, int], tuple[Status, bool]] = msgspec.field(default_factory=dict)

    async def of(self, group: AnyGroup, within: Rows | None) -> Counted | None:
        """What trying the group within these rows would come to; None where only trying it tells."""
        generated = await self._placements(key_of(group), within)
        if not generated.status.ok:
            return NONE_FITS if generated.status.rejected else None
        found = await self.in_each(group, generated.placements)
        if found is None:
            return None
        fitting = {len(each.assignments): each for each in found if each.fits}
        return NONE_FITS if not fitting else next(iter(fitting.values())) if len(fitting) == 1 else None

    async def _placements(self, key: AnyKey, within: Rows | None) -> PlacementsResult:
        state, question = CycleState(), self.counts.question
        state.write(CycleRecord, replace(question.members[0].record, intervals=[]))
        if not isinstance(key, TreeKey):
            state.write(PodGroupStates, question.states.copy_of(key))
        return await run_generate(question.framework, state, key, self.counts.ground.snapshot, within)

    async def in_each(self, group: AnyGroup, placements: Sequence[Placement]) -> list[Counted] | None:
        """The same for each of the group's placements; None where one cannot be counted."""
        key = key_of(group)
        if not isinstance(key, TreeKey):
            counts = await self.counts.in_each(placements)
            found = [count for count in counts if count is not None]
            return found if len(found) == len(counts) else None
        found = []
        for placement in placements:
            count = await self._below(key, placement)
            if count is None:
                return None
            found.append(count)
            if self.counts.question.meter.worked("a tree of groups"):
                await self.counts.question.meter.breathe()
        return found

    async def _below(self, key: TreeKey, placement: Placement) -> Counted | None:
        (child,) = self.trees.children(key)
        _, goes_on = await self._verdict(key, 1, 0)
        if not goes_on:
            return NONE_FITS
        everywhere = placement.rows.size == len(self.counts.ground.snapshot)
        count = await self.of(child, None if everywhere else placement.rows)
        if count is None:
            return None
        status, _ = await self._verdict(key, 0, int(count.fits))
        return Counted(status.ok, count.assignments if count.fits else ())

    async def _verdict(self, key: TreeKey, left: int, scheduled: int) -> tuple[Status, bool]:
        """It is the same in all placements: trees are counted where GangScheduling alone judges them."""
        known = self._verdicts.get((key, left, scheduled))
        if known is None:
            known = self._verdicts[key, left, scheduled] = await self.verdict(key, left, scheduled)
        return known


def has_one_leaf(trees: GroupTrees, group: AnyGroup) -> bool:
    """Whether there is one group below it, and below that one, down to one pod group."""
    key = key_of(group)
    while isinstance(key, TreeKey):
        children = trees.children(key)
        if len(children) != 1:
            return False
        key = key_of(children[0])
    return True
