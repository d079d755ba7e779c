"""Whether a pod's claims can be had from each node: what PreFilter prepares and Filter asks.

Nodes with one view of the devices get one answer, which pods that ask the same share (answers.py).

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go Filter (Kubernetes v1.36).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.attempts.pacing import paced
from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status, unresolvable
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node_selector import NodeSelector
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps, at_once
from berth.plugins.dynamic_resources.answers import ALTERNATIVES, REASONS, KnownAnswers
from berth.plugins.dynamic_resources.asking import ClaimAsk, claim_ask
from berth.plugins.dynamic_resources.extended_resources import (
    ContainerMapping,
    ExtendedResources,
    with_requests,
)
from berth.plugins.dynamic_resources.inventory import Inventory
from berth.plugins.dynamic_resources.picking import AllocationError
from berth.plugins.dynamic_resources.searching import (
    PLUGIN,
    TIMED_OUT,
    NodeAllocation,
    PodSearch,
    SearchTerms,
)
from berth.plugins.dynamic_resources.supply import Supply
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.node_matching import matching_nodes
from berth.snapshot.snapshot import Snapshot

MADE_BEFORE = "cannot schedule extended resource claim"
NO_SUCH_RESOURCE = "cannot fit resource"
NOT_ON_NODE = "resourceclaim not available on the node"


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


class Allocated(msgspec.Struct, frozen=True):
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
    known: KnownAnswers
    terms: SearchTerms
    statuses: list[Status] = field(default_factory=list)
    unavailable: dict[int, set[str]] = field(default_factory=dict)
    """The nodes that an allocated claim, by its index, cannot be used from."""
    inventory: Inventory = field(init=False)
    """What there was when the question was asked: later pods may see another one."""
    _searches: dict[int, PodSearch | None] = field(default_factory=dict)
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
    def pod_searches(self) -> list[PodSearch]:
        """One for each set of extended resources that nodes leave to devices."""
        return [search for search in self._searches.values() if search is not None]

    @property
    def prefers(self) -> bool:
        """Whether one node may be worth more than another."""
        return any(claim.preference for claim in self.allocated) or any(
            search.answers.prefers for search in self.pod_searches
        )

    def with_supply(self, supply: Supply) -> "DeviceQuery":
        """Return the same question about a simulated supply; its answers are not shared."""
        return DeviceQuery(
            self.pod, self.allocated, self.asks, self.extended, supply, KnownAnswers(), self.terms
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
        if pattern not in self._searches:
            return None
        search = self._searches[pattern]
        if search is None:
            return NodeAllocation()
        return search.allocation(int(at_once(self.inventory.groups(nodes))[row]))

    def scores(self, nodes: Snapshot) -> Scores:
        """The worth of the chosen alternatives; those of allocated claims count beside devices that are new.

        Shapes: result int64 (n,).
        """
        scores = np.zeros(len(nodes), dtype=np.int64)
        if self.supply is None or not self.prefers:
            return scores
        before = sum(claim.preference for claim in self.allocated)
        groups, patterns = at_once(self.inventory.groups(nodes)), self._patterns(nodes)
        for pattern, search in self._searches.items():
            if search is not None:
                rows = patterns == pattern
                views = groups[rows]
                scores[rows] = np.where(search.fits(views), search.preferences(views) + before, 0)
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
        groups, left = at_once(self.inventory.groups(nodes)), codes == 0
        asked: list[tuple[Ints, Ints, PodSearch]] = []
        for pattern, rows in self._by_pattern(nodes, left):
            search = self._search_for(pattern)
            if search is not None:
                asked.append((rows, groups[rows], search))
        for rows, views, search in asked:
            await search.solve(rows, views, nodes.names, meter)
        for rows, views, search in asked:
            reasons = search.reasons(views)
            for number, text in enumerate(REASONS[1:], 1):
                those = reasons == number
                if those.any():
                    codes[rows[those]] = self._code(unresolvable(text))
            (unanswered,) = (reasons < 0).nonzero()
            if unanswered.size:
                some_fit = None in self._searches.values() or any(s.fits(v).any() for _, v, s in asked)
                self._give_reasons(
                    codes, search, rows[unanswered], views[unanswered], nodes, some_fit=some_fit
                )

    def _give_reasons(
        self,
        codes: ReasonCodes,
        search: PodSearch,
        rows: Ints,
        views: Ints,
        nodes: Snapshot,
        *,
        some_fit: bool,
    ) -> None:
        """The codes of rows without an answer. Raises: AllocationError where nothing was found in time."""
        for row, view in zip(rows.tolist(), views.tolist(), strict=True):
            status = search.failed.get(view)
            if status is None:
                if not some_fit:
                    raise AllocationError(f"node {nodes.names[row]}: {TIMED_OUT}")
                status = unresolvable(TIMED_OUT)
            codes[row] = self._code(status)

    def _by_pattern(self, nodes: Snapshot, left: Mask) -> Iterator[tuple[int, Ints]]:
        """The rows that are left, by what they leave to devices. Shapes: left bool (n,); rows int64 (k,)."""
        if self.extended is None or not self.extended.mapped:
            yield 0, left.nonzero()[0]
            return
        patterns = self._patterns(nodes)
        for pattern in np.unique(patterns[left]).tolist():
            yield pattern, ((patterns == pattern) & left).nonzero()[0]

    def _patterns(self, nodes: Snapshot) -> Ints:
        """Which extended resources each node leaves to devices, as one number. Shapes: result int64 (n,)."""
        patterns = np.zeros(len(nodes), dtype=np.int64)
        for name in self.extended.mapped if self.extended is not None else ():
            offered = nodes.offered(name)
            by_plugin = False if offered is None else offered > 0
            patterns = patterns * 2 + np.where(by_plugin, 0, 1)
        return patterns

    def _search_for(self, pattern: int) -> PodSearch | None:
        """What nodes of that pattern are asked; None where no device is needed from them."""
        if pattern not in self._searches:
            self._searches[pattern] = self._made(pattern)
        return self._searches[pattern]

    def _made(self, pattern: int) -> PodSearch | None:
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
        return PodSearch(asks, mappings, answers, self.supply, self.terms)

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
