"""The search for devices that meet all claims of a pod on nodes with one view.

Depth first, and the first solution counts: claims in order, their requests in order, alternatives in order,
devices as combinations in the order of their pools.

    claim -> request -> alternative -> device -> ... -> next request -> next claim -> solved
                                          ^ what does not lead to a solution is taken back

At the first dead end the search looks at all devices, and from then on leaves out what cannot lead to a
solution (dead_ends.py); it finds the same solution, or none, as if it had tried everything.

Source: dynamic-resource-allocation structured/allocator.go (Kubernetes v1.36).
"""

from collections.abc import Generator, Hashable, Iterator, Sequence
from math import inf
from typing import Any, TypeAlias

import msgspec

from berth.cel import Look, look_at_nothing
from berth.plugins.dynamic_resources.asking import Ask, ClaimAsk
from berth.plugins.dynamic_resources.dead_ends import DeadEnds
from berth.plugins.dynamic_resources.devices import Device, DeviceSelectorError
from berth.plugins.dynamic_resources.inventory import ReachableDevices
from berth.plugins.dynamic_resources.picking import (
    MAX_RESULTS,
    AllocationError,
    Pick,
    Picks,
    UnsuitableNodeError,
)
from berth.plugins.dynamic_resources.supply import Supply

Solution: TypeAlias = list[list[Pick]]
"""The picks of each claim, in order."""

Way: TypeAlias = Iterator[Any]
"""The ways on from one point of the search: each is a Way itself, or None where one did not lead on.

It is advanced again only once the way that it gave is at its end, without a solution.
"""

DEAD_END: Way = iter(())


class _Step(msgspec.Struct, frozen=True):
    """An alternative that is being tried, and the devices it may get."""

    claim: int
    request: int
    ask: Ask
    devices: Sequence[Device]


class AllocationSearch:
    """One search, which goes on for as long as it is advanced."""

    def __init__(
        self, supply: Supply, view: ReachableDevices, claims: Sequence[ClaimAsk], look: Look = look_at_nothing
    ) -> None:
        self.solution: Solution | None = None
        """Devices for every claim, once there are some."""
        self._look_up = look
        self._looked = False
        self._supply = supply
        self._view = view
        self._claims = claims
        self._unsure: set[tuple[str, ...]] = set()
        """Selectors that fail on some device."""
        self._picks = Picks(supply, claims, self._unsure, self._look)
        self._everything: dict[tuple[int, str], list[Device]] = {}
        """What requests for all devices get, by claim and name of the request."""
        self._dead_ends: DeadEnds | None = None
        self._dead: set[Hashable] = set()
        """What was tried in vain."""
        self._ways: list[Way] = [self._begin()]

    def advance(self, work: int) -> bool:
        """Go on for about so many devices; whether the search has ended, with or without a solution.

        A selector that takes long on one device counts as all of them.
        Raises: AllocationError, and what `look` raises; the search cannot go on after that.
        """
        ways = self._ways
        for _ in range(work):
            if not ways or self.solution is not None:
                return True
            way = next(ways[-1], DEAD_END)
            if way is DEAD_END:
                ways.pop()
                if self._dead_ends is None and self._picks.made:
                    ways.append(self._survey())
            elif way is not None:
                ways.append(way)
            if self._looked:
                self._looked = False
                break
        return not ways or self.solution is not None

    def _look(self) -> None:
        """Look up in the midst of an evaluation."""
        self._looked = True
        self._look_up()

    def _begin(self) -> Way:
        for claim in range(len(self._claims)):
            yield from self._check_count(claim)
        yield self._request(0, 0)

    def _check_count(self, claim: int) -> Way:
        """A claim never gets more devices than so many, whatever there is."""
        asked = self._claims[claim]
        least = 0
        for asks in asked.requests:
            smallest = inf
            for ask in asks:
                count = (yield from self._all_of(claim, ask)) if ask.every else ask.count
                smallest = min(smallest, count)
            least += int(smallest)
        if least > MAX_RESULTS:
            of_this_node = any(ask.every for asks in asked.requests for ask in asks)
            raise (UnsuitableNodeError if of_this_node else AllocationError)(
                f"claim {asked.claim.key}: number of requested devices {least} "
                f"exceeds the claim limit of {MAX_RESULTS}"
            )

    def _all_of(self, claim: int, ask: Ask) -> Generator[None, None, int]:
        """How many devices a request for all of them gets; these are those that others have left room on."""
        self._check_pools(claim, ask)
        try:
            matching = yield from self._view.matching(ask.selectors, self._look)
        except DeviceSelectorError as error:
            raise self._picks.broken(claim, ask, error) from error
        devices = [d for d in matching if self._picks.takes(claim, ask, d) is not None]
        self._everything[claim, ask.name] = devices
        return len(devices)

    def _check_pools(self, claim: int, ask: Ask) -> None:
        """All devices can only be had of pools that are known in full."""
        for pool in (part.pool for part in self._view.parts):
            if pool.problem:
                problem = f"asks for all devices, but resource pool {pool.full_name} {pool.problem}"
                raise UnsuitableNodeError(f"{self._picks.words(claim, ask)}: {problem}")

    def _survey(self) -> Way:
        """Learn what cannot lead to a solution; where that is known of every device, begin anew."""
        dead_ends = DeadEnds(self._supply, self._view, self._claims, self._look)
        yield from dead_ends.survey()
        self._dead_ends = dead_ends
        if dead_ends.looks_ahead:
            self._picks = Picks(self._supply, self._claims, self._unsure, self._look)
            self._ways[:-1] = [self._request(0, 0)]

    def _request(self, claim: int, request: int) -> Way:
        """The ways from before a request."""
        if claim == len(self._claims):
            self._solved()
            return
        requests = self._claims[claim].requests
        if request == len(requests):
            yield self._request(claim + 1, 0)
            return
        state = self._state(claim, request)
        if state in self._dead or not self._promising(claim, request):
            return
        room = MAX_RESULTS - self._picks.count(claim)
        for ask in requests[request]:
            if ask.every:
                step = _Step(claim, request, ask, self._everything[claim, ask.name])
                if 0 < len(step.devices) <= room:
                    yield self._each(step, 0)
            elif ask.count <= room:
                devices = yield from self._possible(ask)
                yield self._combination(_Step(claim, request, ask, devices), ask.count, 0)
        if state is not None:
            self._dead.add(state)

    def _solved(self) -> None:
        self.solution = [[] for _ in self._claims]
        for pick in self._picks.made:
            self.solution[pick.claim].append(pick)

    def _state(self, claim: int, request: int) -> Hashable | None:
        """All that decides what comes of the requests from this one on; None before any dead end."""
        return None if self._dead_ends is None else self._dead_ends.state(self._picks, claim, request)

    def _promising(
        self, claim: int, request: int, step: _Step | None = None, left: int = 0, at: int = 0
    ) -> bool:
        """Whether there may be enough devices for all that is still to be picked."""
        dead_ends = self._dead_ends
        if dead_ends is None or not dead_ends.looks_ahead:
            return True
        begun = None if step is None or not left else (step.ask, left, step.devices[at - 1])
        return dead_ends.enough(self._picks, claim, request, begun)

    def _possible(self, ask: Ask) -> Generator[None, None, Sequence[Device]]:
        """The free devices that match; where a selector fails on some device, all, to be asked one by one.

        A device that the search does not come to, or that is in use, does no harm then.
        """
        try:
            matching = yield from self._view.matching(ask.selectors, self._look)
        except DeviceSelectorError:
            self._unsure.add(ask.selectors)
            return self._view.usable
        is_free = self._supply.is_free
        return [device for device in matching if is_free(ask, device)]

    def _each(self, step: _Step, at: int) -> Way:
        """The way on if the request gets all its devices, from that one on."""
        if at == len(step.devices):
            yield self._request(step.claim, step.request + 1)
        elif self._picks.pick(step.claim, step.ask, step.devices[at]):
            yield self._each(step, at + 1)
            self._picks.take_back()

    def _combination(self, step: _Step, left: int, start: int) -> Way:
        """The ways to pick so many more devices, from that one on."""
        if left == 0:
            yield self._request(step.claim, step.request + 1)
            return
        picks = self._picks
        in_vain: set[int] = set()
        # Too few devices may be left; one that an expression fails on still ends the search with an error.
        may_fail = step.ask.selectors in self._unsure or picks.derives(step.ask)
        spare = 0 if may_fail else left - 1
        for at in range(start, len(step.devices) - spare):
            device = step.devices[at]
            # What leads nowhere with one device leads nowhere with another that is just like it.
            if in_vain and self._likeness(device) in in_vain:
                continue
            if not picks.pick(step.claim, step.ask, device):
                yield None
                continue
            if left == 1 or self._promising(step.claim, step.request, step, left - 1, at + 1):
                yield self._combination(step, left - 1, at + 1)
            else:
                yield None
            picks.take_back()
            in_vain.add(self._likeness(device))

    def _likeness(self, device: Device) -> int:
        assert self._dead_ends is not None, "there was a dead end before a second device is tried"
        return self._dead_ends.likeness(device)
