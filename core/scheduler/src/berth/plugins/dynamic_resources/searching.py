"""The searches of one filter: what nodes that leave the same extended resources to devices are asked.

    views to ask about --known?--> answered
                       --search--> answered; what takes long waits until all others have ended

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go Filter (Kubernetes v1.36).
"""

from collections.abc import Hashable, Sequence
from math import inf

import msgspec
import numpy as np

from berth.cel import Look
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.clock import Clock
from berth.framework.status import Status, failed, unresolvable
from berth.objects.devices.resource_claims import ResourceClaim
from berth.plugins.dynamic_resources.allocator import AllocationSearch, Solution
from berth.plugins.dynamic_resources.answers import INVALID, NO_DEVICES, DeviceAnswers, found
from berth.plugins.dynamic_resources.asking import ClaimAsk
from berth.plugins.dynamic_resources.extended_resources import ContainerMapping
from berth.plugins.dynamic_resources.inventory import ReachableDevices
from berth.plugins.dynamic_resources.picking import AllocationError, UnsuitableNodeError
from berth.plugins.dynamic_resources.supply import Supply
from berth.snapshot.columns.growing import Ints, Mask

PLUGIN = "DynamicResources"
TIMED_OUT = "timed out trying to allocate devices"

STRETCH = 16
"""After so many devices a search looks at the clock."""
FIRST_STRETCHES = 16
"""A search that takes longer waits until all other nodes have been searched."""


class SelectorOutOfTimeError(Exception):
    """A selector's evaluation was ended, because the cycle's budget is used up."""


class NodeAllocation(msgspec.Struct, frozen=True):
    """What a node has for a pod: the devices, and the claims that they are for."""

    claims: Sequence[ResourceClaim] = ()
    solution: Solution = msgspec.field(default_factory=list)
    mappings: Sequence[ContainerMapping] = ()


class AllocationTask(msgspec.Struct, frozen=True):
    """A search under way, what it is for, and when it has to end."""

    search: AllocationSearch
    view: ReachableDevices
    number: int
    key: Hashable
    node_name: str
    deadline: float


class SearchTerms(msgspec.Struct, frozen=True):
    """How long one search may take; 0 stands for no limit. Units: seconds."""

    clock: Clock
    timeout_seconds: float = 0.0


class PodSearch:
    """The asks of one pod, and the answers as they were in its cycle.

    Pods that come later change the shared answers: this one's are a copy. Shapes: see `DeviceAnswers`.
    """

    def __init__(
        self,
        asks: Sequence[ClaimAsk],
        mappings: Sequence[ContainerMapping],
        answers: DeviceAnswers,
        supply: Supply,
        terms: SearchTerms,
    ) -> None:
        self.answers = answers
        self.failed: dict[int, Status] = {}
        """Why a search ended in an error, by the number of the view."""
        self._long: dict[Hashable, AllocationTask] = {}
        """Searches that take long, by what they are for."""
        self._alike: list[int] = []
        """Views for which one of these may find something, too."""
        self._asks = asks
        self._mappings = mappings
        self._supply = supply
        self._terms = terms
        answers.refresh(supply)
        self.table = answers.table
        self._views = answers.reduced
        self._of_view = answers.of_view.copy()
        self._reasons = answers.reasons.copy()
        self._preferences = answers.preferences.copy()

    def reasons(self, views: Ints) -> Ints:
        """The reasons' places in REASONS, -1 where there is no answer. Shapes: views and result (k,)."""
        return np.where(self._of_view[views] > 0, self._reasons[views], -1)

    def fits(self, views: Ints) -> Mask:
        """Where devices were found. Shapes: views and result (k,)."""
        fits: Mask = self.reasons(views) == 0
        return fits

    def preferences(self, views: Ints) -> Ints:
        """What the chosen alternatives are worth where devices were found. Shapes: views and result (k,)."""
        return self._preferences[views]

    def allocation(self, view: int) -> NodeAllocation | None:
        """What was found for the view, None for nothing."""
        place = int(self._of_view[view]) if view < self._of_view.size else 0
        if not place or self._reasons[view]:
            return None
        solution = self.table[place].solution(self._views[view])
        return NodeAllocation([ask.claim for ask in self._asks], solution, self._mappings)

    async def solve(self, rows: Ints, views: Ints, names: Sequence[str], meter: CycleMeter) -> None:
        """Answer for each view, on behalf of its first node, while the cycle's budget lasts.

        Searches that take long go on once all others have ended, for those may find all that is needed.
        Shapes: rows and views (k,); names by row.
        """
        if self.table is not self.answers.table:
            # What was found for others since has driven it all out.
            self.table, self._views = self.answers.table, self.answers.reduced
            self._of_view[:] = 0
        present = np.zeros(self._of_view.size, dtype=bool)
        present[views] = True
        present &= self._of_view == 0
        self._long, self._alike = {}, []

        def look() -> None:
            if not meter.may_go_on(PLUGIN):
                raise SelectorOutOfTimeError

        def first_node(view: int) -> str:
            row: int = rows[int(np.argmax(views == view))].item()
            return names[row]

        for view in present.nonzero()[0].tolist():
            await self._search(view, first_node(view), look, meter, FIRST_STRETCHES)
        for task in self._long.values():
            if not await meter.go_on(PLUGIN) or not await self._pursue(task, meter, None):
                return
        for view in self._alike:
            await self._search(view, first_node(view), look, meter, None)

    async def _search(
        self, view: int, node_name: str, look: Look, meter: CycleMeter, stretches: int | None
    ) -> None:
        """Answer for the view, or leave it for later: where it takes long, or another like it does."""
        if view in self.failed or not await meter.go_on(PLUGIN):
            return
        task = await self._task(view, node_name, look, meter)
        if task is None:
            return
        if stretches is not None and task.key in self._long:
            self._alike.append(view)
        elif not await self._pursue(task, meter, stretches) and stretches is not None:
            self._long[task.key] = task

    async def _task(
        self, number: int, node_name: str, look: Look, meter: CycleMeter
    ) -> AllocationTask | None:
        """The search for one view; None where its outcome is known, or the budget used up."""
        answers = self.answers
        steps = answers.key(self._supply, number, look)
        try:
            while True:
                next(steps)
                if not await meter.go_on(PLUGIN):
                    return None
        except StopIteration as end:
            key = end.value
        except SelectorOutOfTimeError:
            return None
        if answers.recall(key, number, self._supply):
            self._take(number)
            return None
        terms = self._terms
        deadline = terms.clock.monotonic() + terms.timeout_seconds if terms.timeout_seconds else inf
        view = answers.reduced[number]
        search = AllocationSearch(self._supply, view, self._asks, look)
        return AllocationTask(search, view, number, key, node_name, deadline)

    async def _pursue(self, task: AllocationTask, meter: CycleMeter, stretches: int | None) -> bool:
        """Whether the search ended: not where it takes longer than that, or than the budget lasts."""
        try:
            while not task.search.advance(STRETCH):
                if stretches is not None:
                    stretches -= 1
                if stretches == 0 or not await meter.go_on(PLUGIN):
                    return False
                if self._terms.timeout_seconds and self._terms.clock.monotonic() >= task.deadline:
                    self.failed[task.number] = failed(f"node {task.node_name}: {TIMED_OUT}")
                    return True
        except AllocationError as error:
            of_this_node = isinstance(error, UnsuitableNodeError)
            self.failed[task.number] = unresolvable(str(error)) if of_this_node else failed(error)
            return True
        except SelectorOutOfTimeError:
            return False
        self._learn(task)
        return True

    def _learn(self, task: AllocationTask) -> None:
        solution = task.search.solution
        outcome = INVALID if task.view.has_invalid else NO_DEVICES
        self.answers.learn(task.key, outcome if solution is None else found(solution, task.view))
        self.answers.recall(task.key, task.number, self._supply)
        self._take(task.number)

    def _take(self, view: int) -> None:
        answers = self.answers
        self._of_view[view], self._reasons[view] = answers.of_view[view], answers.reasons[view]
        self._preferences[view] = answers.preferences[view]
