"""Whether a pod's claims can be had from each node: what PreFilter prepares and Filter asks.

Nodes with one view of the devices get one answer, remembered for the cycle.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go Filter (Kubernetes v1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

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
from berth.plugins.dynamic_resources.asking import ClaimAsk, claim_ask
from berth.plugins.dynamic_resources.extended_resources import (
    ContainerMapping,
    ExtendedResources,
    with_requests,
)
from berth.plugins.dynamic_resources.inventory import ReachableDevices
from berth.plugins.dynamic_resources.picking import AllocationError, Supply, UnsuitableNodeError
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.node_matching import matching_nodes
from berth.snapshot.snapshot import Snapshot

MADE_BEFORE = "cannot schedule extended resource claim"
NO_SUCH_RESOURCE = "cannot fit resource"
NO_SOLUTION = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"
NOT_ON_NODE = "resourceclaim not available on the node"
TIMED_OUT = "timed out trying to allocate devices"
PLUGIN = "DynamicResources"

STRETCH = 16
"""After so many devices a search looks at the clock."""
FIRST_STRETCHES = 16
"""A search that takes longer waits until all other nodes have been searched."""

ALTERNATIVES = 8
"""A request has at most that many; the first is worth that much."""


class SelectorOutOfTimeError(Exception):
    """A selector's evaluation was ended, because the cycle's budget is used up."""


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """The answer for nodes with one view: why not, or the devices and the claims that they are for."""

    status: Status | None = None
    claims: Sequence[ResourceClaim] = ()
    solution: Solution = field(default_factory=list)
    mappings: Sequence[ContainerMapping] = ()

    @property
    def preference(self) -> int:
        """What the chosen alternatives are worth: more for those named first."""
        chosen = {
            (pick.claim, pick.ask.request): pick.ask.position for picks in self.solution for pick in picks
        }
        return sum(ALTERNATIVES - position for position in chosen.values() if position is not None)


_NOTHING = NodeAllocation()


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
    claims: Sequence[ResourceClaim]
    mappings: Sequence[ContainerMapping]
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


@dataclass(slots=True)
class DeviceQuery:
    """All that is asked of the nodes for one pod."""

    pod: Pod
    allocated: Sequence[Allocated]
    asks: Sequence[ClaimAsk]
    extended: ExtendedResources | None
    supply: Supply | None
    clock: Clock
    timeout_seconds: float = 0.0
    outcomes: dict[int, NodeAllocation] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)
    unavailable: dict[int, set[str]] = field(default_factory=dict)
    """The nodes that an allocated claim, by its index, cannot be used from."""
    _reached: dict[int, Mask] = field(default_factory=dict)
    """Where in the whole snapshot an allocated claim, by its index, can be used as its selector says."""

    @property
    def searches(self) -> bool:
        """Whether devices have to be found, so that the answer may take long."""
        return self.supply is not None

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
            yield from self.supply.inventory.groups(nodes)
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
        outcome = None if row is None else self.outcomes.get(int(self._keys(nodes)[row]))
        return None if outcome is None or outcome.status is not None else outcome

    def scores(self, nodes: Snapshot) -> Scores:
        """The worth of the chosen alternatives; those of allocated claims count beside devices that are new.

        Shapes: result int64 (n,).
        """
        if self.supply is None:
            return np.zeros(len(nodes), dtype=np.int64)
        keys, places = np.unique(self._keys(nodes), return_inverse=True)
        before = sum(claim.preference for claim in self.allocated)
        found = [self.outcomes.get(key, _NOTHING) for key in keys.tolist()]
        worth = [outcome.preference + before if outcome.claims else 0 for outcome in found]
        return np.array(worth, dtype=np.int64)[places]

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
        """Ask once for each key among the nodes that are still in."""
        (rows,) = np.nonzero(codes == 0)
        numbers, first, places = np.unique(self._keys(nodes)[rows], return_index=True, return_inverse=True)
        keys = numbers.tolist()
        names = [nodes.names[row] for row in rows[first].tolist()]
        await self._solve(dict(zip(keys, names, strict=True)), meter)
        outcomes = [self.outcomes.get(key) for key in keys]
        unended = None
        if None in outcomes:
            if not any(outcome is not None and outcome.status is None for outcome in outcomes):
                raise AllocationError(f"node {names[outcomes.index(None)]}: {TIMED_OUT}")
            unended = unresolvable(TIMED_OUT)
        found = np.zeros(len(keys), dtype=np.uint32)
        for i, outcome in enumerate(outcomes):
            status = unended if outcome is None else outcome.status
            found[i] = 0 if status is None else self._code(status)
        codes[rows] = found[places]

    async def _solve(self, nodes: dict[int, str], meter: CycleMeter) -> None:
        """Search for devices for each key, on behalf of that node, while the cycle's budget lasts.

        Searches that take long go on once all others have ended, for those may find all that is needed.
        """
        long: dict[int, AllocationTask] = {}
        for key, node_name in nodes.items():
            if key in self.outcomes:
                continue
            if not await meter.go_on(PLUGIN):
                return
            outcome = self._task(key, node_name, meter)
            if isinstance(outcome, AllocationTask):
                ended = await self._pursue(outcome, meter, FIRST_STRETCHES)
                if ended is None:
                    long[key] = outcome
                    continue
                outcome = ended
            self.outcomes[key] = outcome
        for key, task in long.items():
            if not await meter.go_on(PLUGIN):
                return
            ended = await self._pursue(task, meter, None)
            if ended is None:
                return
            self.outcomes[key] = ended

    async def _pursue(
        self, task: AllocationTask, meter: CycleMeter, stretches: int | None
    ) -> NodeAllocation | None:
        """The outcome; None where it takes longer than so many stretches, or than the budget lasts."""
        try:
            while not task.search.advance(STRETCH):
                if stretches is not None:
                    stretches -= 1
                if stretches == 0 or not await meter.go_on(PLUGIN):
                    return None
                if self.timeout_seconds and self.clock.monotonic() >= task.deadline:
                    return NodeAllocation(failed(f"node {task.node_name}: {TIMED_OUT}"))
        except AllocationError as error:
            of_this_node = isinstance(error, UnsuitableNodeError)
            return NodeAllocation(unresolvable(str(error)) if of_this_node else failed(error))
        except SelectorOutOfTimeError:
            return None
        if task.search.solution is None:
            return NodeAllocation(unresolvable(INVALID_POOLS if task.view.has_invalid else NO_SOLUTION))
        return NodeAllocation(None, task.claims, task.search.solution, task.mappings)

    def _keys(self, nodes: Snapshot) -> Ints:
        """A number for each node: its view, and which extended resources it leaves to devices."""
        assert self.supply is not None, "only a question with something to allocate has keys"
        keys = at_once(self.supply.inventory.groups(nodes))
        if self.extended is None:
            return keys
        for name in self.extended.mapped:
            offered = nodes.offered(name)
            by_plugin = False if offered is None else offered > 0
            keys = keys * 2 + np.where(by_plugin, 0, 1)
        return keys

    def _task(self, key: int, node_name: str, meter: CycleMeter) -> AllocationTask | NodeAllocation:
        """The search for one key; an outcome where there is nothing to search for."""
        assert self.supply is not None, "only a question with something to allocate is searched"
        asks = list(self.asks)
        mappings: list[ContainerMapping] = []
        if self.extended is not None:
            classes = {}
            for name in reversed(self.extended.mapped):
                key, by_devices = divmod(key, 2)
                if by_devices:
                    classes[name] = self.extended.classes[name]
            if classes:
                claim, mappings = with_requests(self.extended.claim, self.pod, classes)
                by_class = {c.name: c for c in classes.values()}
                asks.append(claim_ask(claim, by_class.get))
        if not asks:
            return NodeAllocation()
        view = self.supply.inventory.view(key)
        deadline = self.clock.monotonic() + self.timeout_seconds if self.timeout_seconds else inf

        def look() -> None:
            if not meter.may_go_on(PLUGIN):
                raise SelectorOutOfTimeError

        search = AllocationSearch(self.supply, view, asks, look)
        return AllocationTask(search, view, [ask.claim for ask in asks], mappings, node_name, deadline)

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
