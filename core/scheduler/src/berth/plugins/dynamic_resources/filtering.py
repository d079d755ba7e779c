"""Whether a pod's claims can be had from each node: what PreFilter prepares and Filter asks.

Nodes with one view of the devices get one answer, which pods that ask the same share (answers.py).

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go Filter (Kubernetes v1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from berth.cel import Look
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.attempts.pacing import paced
from berth.framework.clock import Clock
from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status, failed, unresolvable
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node_selector import NodeSelector
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps, at_once
from berth.plugins.dynamic_resources.allocator import AllocationSearch, Solution
from berth.plugins.dynamic_resources.answers import (
    ALTERNATIVES,
    INVALID,
    NO_DEVICES,
    REASONS,
    DeviceAnswers,
    Found,
    KnownAnswers,
    found,
)
from berth.plugins.dynamic_resources.asking import ClaimAsk, claim_ask
from berth.plugins.dynamic_resources.extended_resources import (
    ContainerMapping,
    ExtendedResources,
    with_requests,
)
from berth.plugins.dynamic_resources.inventory import Inventory, ReachableDevices
from berth.plugins.dynamic_resources.picking import AllocationError, UnsuitableNodeError
from berth.plugins.dynamic_resources.supply import Supply
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.node_matching import matching_nodes
from berth.snapshot.snapshot import Snapshot

MADE_BEFORE = "cannot schedule extended resource claim"
NO_SUCH_RESOURCE = "cannot fit resource"
NOT_ON_NODE = "resourceclaim not available on the node"
TIMED_OUT = "timed out trying to allocate devices"
PLUGIN = "DynamicResources"

STRETCH = 16
"""After so many devices a search looks at the clock."""
FIRST_STRETCHES = 16
"""A search that takes longer waits until all other nodes have been searched."""


class SelectorOutOfTimeError(Exception):
    """A selector's evaluation was ended, because the cycle's budget is used up."""


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """What a node has for a pod: the devices, and the claims that they are for."""

    claims: Sequence[ResourceClaim] = ()
    solution: Solution = field(default_factory=list)
    mappings: Sequence[ContainerMapping] = ()


def preference_of(claim: ResourceClaim) -> int:
    """What the alternatives are worth that an allocated claim has got."""
    assert claim.allocation is not None, "asked of allocated claims only"
    got = {result.request for result in claim.allocation.devices.results}
    return sum(
        ALTERNATIVES - position
        for request in claim.spec.devices.requests
        for position, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in got
    )


@dataclass(frozen=True, slots=True)
class AllocationTask:
    """A search under way, what it is for, and when it has to end."""

    search: AllocationSearch
    view: ReachableDevices
    number: int
    key: object
    node_name: str
    deadline: float


@dataclass(frozen=True, slots=True)
class Allocated:
    """A claim that has its devices: where they can be used, and whether nothing is expected of them."""

    index: int
    selector: NodeSelector | None
    given_up: bool
    preference: int = 0
    """What the alternatives that it got are worth."""


class _Part:
    """What nodes are asked that leave the same extended resources to devices, and this cycle's answers.

    Pods that come later change the shared answers: this one's are a copy. Shapes: see `DeviceAnswers`.
    """

    def __init__(
        self, asks: Sequence[ClaimAsk], mappings: Sequence[ContainerMapping], answers: DeviceAnswers
    ) -> None:
        self.asks = asks
        self.mappings = mappings
        self.answers = answers
        self.table = answers.table
        self.of_view = answers.of_view.copy()
        self.reasons = answers.reasons.copy()
        self.preferences = answers.preferences.copy()
        self.failed: dict[int, Status] = {}
        """Why a search ended in an error, by the number of the view."""

    def take(self, view: int) -> None:
        """Take over the answer for that view."""
        answers = self.answers
        self.of_view[view], self.reasons[view] = answers.of_view[view], answers.reasons[view]
        self.preferences[view] = answers.preferences[view]

    def allocation(self, inventory: Inventory, view: int) -> NodeAllocation | None:
        """What was found for the view, None for nothing."""
        place = int(self.of_view[view]) if view < self.of_view.size else 0
        if not place or self.reasons[view]:
            return None
        solution = self.table[place].solution(inventory.view(view))
        return NodeAllocation([ask.claim for ask in self.asks], solution, self.mappings)


@dataclass(slots=True)
class DeviceQuery:
    """All that is asked of the nodes for one pod."""

    pod: Pod
    allocated: Sequence[Allocated]
    asks: Sequence[ClaimAsk]
    extended: ExtendedResources | None
    supply: Supply | None
    known: KnownAnswers
    clock: Clock
    timeout_seconds: float = 0.0
    statuses: list[Status] = field(default_factory=list)
    unavailable: dict[int, set[str]] = field(default_factory=dict)
    """The nodes that an allocated claim, by its index, cannot be used from."""
    inventory: Inventory = field(init=False)
    """What there was when the question was asked: later pods may see another one."""
    _parts: dict[int, _Part | None] = field(default_factory=dict)
    _reached: dict[int, Mask] = field(default_factory=dict)
    """Where in the whole snapshot an allocated claim, by its index, can be used as its selector says."""

    def __post_init__(self) -> None:
        if self.supply is not None:
            self.inventory = self.supply.inventory

    @property
    def searches(self) -> bool:
        """Whether devices have to be found, so that the answer may take long."""
        return self.supply is not None

    @property
    def parts(self) -> list[_Part]:
        """What was asked, by which extended resources nodes leave to devices."""
        return [part for part in self._parts.values() if part is not None]

    @property
    def prefers(self) -> bool:
        """Whether one node may be worth more than another."""
        return any(claim.preference for claim in self.allocated) or any(
            part.answers.prefers for part in self.parts
        )

    async def codes_found(self, nodes: Snapshot, meter: CycleMeter) -> ReasonCodes:
        """The same as `codes` where devices have to be found.

        Shapes: result uint32 (n,). Raises: AllocationError where the budget ends too soon for any node.
        """
        looked = paced(meter, PLUGIN, self._look(nodes))
        if looked is not None:
            await looked
        codes = self._begun(nodes)
        await self._search(codes, nodes, meter)
        return self._ended(codes, nodes)

    def codes(self, nodes: Snapshot) -> Steps[ReasonCodes]:
        """A code for each node, 0 where all claims can be had, in steps.

        Shapes: result uint32 (n,).
        """
        yield from self._look(nodes)
        return self._ended(self._begun(nodes), nodes)

    def _look(self, nodes: Snapshot) -> Steps[None]:
        """Find out which nodes reach what, as claims and slices say in any number of terms."""
        if self.supply is not None:
            yield from self.inventory.groups(nodes)
        for claim in self.allocated:
            if claim.selector is not None and claim.index not in self._reached:
                self._reached[claim.index] = yield from matching_nodes(nodes.whole, claim.selector)
            yield

    def _begun(self, nodes: Snapshot) -> ReasonCodes:
        codes = np.zeros(len(nodes), dtype=np.uint32)
        if self.extended is not None:
            self._mark(codes, self._short(nodes), NO_SUCH_RESOURCE)
            if self.extended.made_before:
                self._mark(codes, np.ones(len(nodes), dtype=bool), MADE_BEFORE)
        return codes

    def _ended(self, codes: ReasonCodes, nodes: Snapshot) -> ReasonCodes:
        for claim in self.allocated:
            away = self._away(claim, nodes)
            self.unavailable.setdefault(claim.index, set()).update(
                nodes.names[row] for row in np.flatnonzero(away & (codes == 0))
            )
        for claim in self.allocated:
            self._mark(codes, self._away(claim, nodes), NOT_ON_NODE)
        return codes

    def found(self, nodes: Snapshot, node_name: str) -> NodeAllocation | None:
        """What was found for one node; None where the pod cannot be there."""
        if self.supply is None:
            return NodeAllocation()
        row = nodes.row_of.get(node_name)
        if row is None:
            return None
        pattern = int(self._patterns(nodes)[row])
        if pattern not in self._parts:
            return None
        part = self._parts[pattern]
        if part is None:
            return NodeAllocation()
        return part.allocation(self.inventory, int(at_once(self.inventory.groups(nodes))[row]))

    def scores(self, nodes: Snapshot) -> Scores:
        """The worth of the chosen alternatives; those of allocated claims count beside devices that are new.

        Shapes: result int64 (n,).
        """
        scores = np.zeros(len(nodes), dtype=np.int64)
        if self.supply is None or not self.prefers:
            return scores
        before = sum(claim.preference for claim in self.allocated)
        groups, patterns = at_once(self.inventory.groups(nodes)), self._patterns(nodes)
        for pattern, part in self._parts.items():
            if part is not None:
                rows = patterns == pattern
                views = groups[rows]
                fits = (part.of_view[views] > 0) & (part.reasons[views] == 0)
                scores[rows] = np.where(fits, part.preferences[views] + before, 0)
        return scores

    def _mark(self, codes: ReasonCodes, where: Mask, text: str) -> None:
        """The reason, for nodes that have none yet."""
        rows = where & (codes == 0)
        if rows.any():
            codes[rows] = self._code(unresolvable(text))

    def _code(self, status: Status) -> int:
        if status not in self.statuses:
            self.statuses.append(status)
        return self.statuses.index(status) + 1

    async def _search(self, codes: ReasonCodes, nodes: Snapshot, meter: CycleMeter) -> None:
        """Ask once for each view among the nodes that are still in."""
        groups, patterns = at_once(self.inventory.groups(nodes)), self._patterns(nodes)
        asked = []
        for pattern in set(patterns[codes == 0].tolist()):
            part = self._part(pattern)
            if part is not None:
                asked.append((((patterns == pattern) & (codes == 0)).nonzero()[0], part))
        for rows, part in asked:
            await self._solve(part, rows, groups[rows], nodes, meter)
        some_fit = any(((part.of_view > 0) & (part.reasons == 0))[groups[rows]].any() for rows, part in asked)
        some_fit = some_fit or None in self._parts.values()
        for rows, part in asked:
            self._put(codes, part, rows, groups[rows], nodes, some_fit=some_fit)

    def _put(
        self, codes: ReasonCodes, part: _Part, rows: Ints, views: Ints, nodes: Snapshot, *, some_fit: bool
    ) -> None:
        """The codes of these rows. Raises: AllocationError where nothing was found in time."""
        reasons, answered = part.reasons[views], part.of_view[views] > 0
        for number, text in enumerate(REASONS[1:], 1):
            those = answered & (reasons == number)
            if those.any():
                codes[rows[those]] = self._code(unresolvable(text))
        for row, view in zip(rows[~answered].tolist(), views[~answered].tolist(), strict=True):
            status = part.failed.get(view)
            if status is None:
                if not some_fit:
                    raise AllocationError(f"node {nodes.names[row]}: {TIMED_OUT}")
                status = unresolvable(TIMED_OUT)
            codes[row] = self._code(status)

    async def _solve(self, part: _Part, rows: Ints, views: Ints, nodes: Snapshot, meter: CycleMeter) -> None:
        """Answer for each view, on behalf of its first node, while the cycle's budget lasts.

        Searches that take long go on once all others have ended, for those may find all that is needed.
        """
        present = np.zeros(part.of_view.size, dtype=bool)
        present[views] = True
        present &= part.of_view == 0
        long: list[AllocationTask] = []

        def look() -> None:
            if not meter.may_go_on(PLUGIN):
                raise SelectorOutOfTimeError

        for view in present.nonzero()[0].tolist():
            if view in part.failed:
                continue
            if not await meter.go_on(PLUGIN):
                return
            name = nodes.names[rows[int(np.argmax(views == view))]]
            task = await self._task(part, view, name, look, meter)
            if task is None:
                continue
            if not await self._pursue(part, task, meter, FIRST_STRETCHES):
                long.append(task)
        for task in long:
            if not await meter.go_on(PLUGIN) or not await self._pursue(part, task, meter, None):
                return

    async def _task(
        self, part: _Part, number: int, node_name: str, look: Look, meter: CycleMeter
    ) -> AllocationTask | None:
        """The search for one view; None where its outcome is known, or the budget used up."""
        assert self.supply is not None, "only a question with something to allocate is searched"
        view, answers = self.inventory.view(number), part.answers
        steps = answers.key(self.supply, view, look)
        try:
            while True:
                next(steps)
                if not await meter.go_on(PLUGIN):
                    return None
        except StopIteration as end:
            key = end.value
        except SelectorOutOfTimeError:
            return None
        if answers.recall(key, number, self.supply):
            part.take(number)
            return None
        deadline = self.clock.monotonic() + self.timeout_seconds if self.timeout_seconds else inf
        search = AllocationSearch(self.supply, view, part.asks, look)
        return AllocationTask(search, view, number, key, node_name, deadline)

    async def _pursue(
        self, part: _Part, task: AllocationTask, meter: CycleMeter, stretches: int | None
    ) -> bool:
        """Whether the search ended: not where it takes longer than that, or than the budget lasts."""
        try:
            while not task.search.advance(STRETCH):
                if stretches is not None:
                    stretches -= 1
                if stretches == 0 or not await meter.go_on(PLUGIN):
                    return False
                if self.timeout_seconds and self.clock.monotonic() >= task.deadline:
                    part.failed[task.number] = failed(f"node {task.node_name}: {TIMED_OUT}")
                    return True
        except AllocationError as error:
            of_this_node = isinstance(error, UnsuitableNodeError)
            part.failed[task.number] = unresolvable(str(error)) if of_this_node else failed(error)
            return True
        except SelectorOutOfTimeError:
            return False
        self._learn(part, task)
        return True

    def _learn(self, part: _Part, task: AllocationTask) -> None:
        assert self.supply is not None, "only a question with something to allocate is searched"
        solution = task.search.solution
        outcome: Found = INVALID if task.view.has_invalid else NO_DEVICES
        if solution is not None:
            outcome = found(solution, task.view)
        part.answers.learn(task.key, outcome)
        part.answers.recall(task.key, task.number, self.supply)
        part.take(task.number)

    def _patterns(self, nodes: Snapshot) -> Ints:
        """Which extended resources each node leaves to devices, as one number. Shapes: result int64 (n,)."""
        patterns = np.zeros(len(nodes), dtype=np.int64)
        for name in self.extended.mapped if self.extended is not None else ():
            offered = nodes.offered(name)
            by_plugin = False if offered is None else offered > 0
            patterns = patterns * 2 + np.where(by_plugin, 0, 1)
        return patterns

    def _part(self, pattern: int) -> _Part | None:
        """What nodes of that pattern are asked; None where no device is needed from them."""
        if pattern not in self._parts:
            self._parts[pattern] = self._made(pattern)
        return self._parts[pattern]

    def _made(self, pattern: int) -> _Part | None:
        assert self.supply is not None, "only a question with something to allocate is searched"
        asks = list(self.asks)
        mappings: list[ContainerMapping] = []
        if self.extended is not None:
            classes = {}
            for name in reversed(self.extended.mapped):
                pattern, by_devices = divmod(pattern, 2)
                if by_devices:
                    classes[name] = self.extended.classes[name]
            if classes:
                claim, mappings = with_requests(self.extended.claim, self.pod, classes)
                by_class = {c.name: c for c in classes.values()}
                asks.append(claim_ask(claim, by_class.get))
        if not asks:
            return None
        answers = self.known.of(asks, self.supply)
        answers.refresh(self.supply)
        return _Part(asks, mappings, answers)

    def _short(self, nodes: Snapshot) -> Mask:
        """Where some extended resource is neither offered nor backed by devices.

        Shapes: result bool (n,).
        """
        assert self.extended is not None, "asked of pods with extended resources only"
        short = np.zeros(len(nodes), dtype=bool)
        for name in self.extended.requests:
            if name not in self.extended.classes:
                offered = nodes.offered(name)
                short |= True if offered is None else offered == 0
        return short

    def _away(self, claim: Allocated, nodes: Snapshot) -> Mask:
        if claim.given_up:
            return np.ones(len(nodes), dtype=bool)
        if claim.selector is None:
            return np.zeros(len(nodes), dtype=bool)
        away: Mask = ~self._reached[claim.index][nodes.rows]
        return away
