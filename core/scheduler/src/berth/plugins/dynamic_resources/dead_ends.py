"""What a search for devices need not try: it would find nothing there, and do nothing else that counts.

- Devices that the claims cannot tell apart lead to the same end.
- So do two ways to the same state: what is left to pick from, and what constraints and counters still allow.
- Where fewer devices are left than are still to be picked, or too little of a counter, there is no solution.
  This is known only where a search in vain ends without an error: no selector fails, and no request for all
  devices can break a constraint.

Two devices are alike only if nothing depends on their order: a request for several devices under a constraint
to be distinct compares neighbours (see constraints.py), and one for all devices under any constraint may come
to an error before or after the device that is missing.
"""

import operator
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import NamedTuple

from berth.cel import Look
from berth.plugins.dynamic_resources.asking import Ask, ClaimAsk
from berth.plugins.dynamic_resources.capacity import CapacityError
from berth.plugins.dynamic_resources.constraints import DeviceConstraintState
from berth.plugins.dynamic_resources.devices import CounterId, Device, DeviceId, DeviceSelectorError
from berth.plugins.dynamic_resources.inventory import ReachableDevices
from berth.plugins.dynamic_resources.picking import MAX_RESULTS, Picks
from berth.plugins.dynamic_resources.supply import Supply

Devices = int
"""A set of devices: the bits of their places among the usable ones."""

Begun = tuple[Ask, int, Device]
"""The request that is being served: how many devices it still needs, each after that one."""


class Need(NamedTuple):
    """This many devices out of these are needed."""

    number: int
    devices: Devices


class Users(NamedTuple):
    """The devices that take something of a counter, and how much each takes, the least first."""

    devices: Devices
    ascending: list[tuple[int, Devices]]


class DeadEnds:
    """What is known of the devices of one view for one pod's claims, once `survey` has run."""

    def __init__(
        self, supply: Supply, view: ReachableDevices, claims: Sequence[ClaimAsk], look: Look
    ) -> None:
        self.looks_ahead = False
        """Whether `enough` may be asked."""
        self._supply = supply
        self._devices = view.usable
        self._look_up = look
        self._claims = claims
        self._place: dict[DeviceId, int] = {device.id: i for i, device in enumerate(view.usable)}
        self._for: dict[tuple[int, str], Devices] = {}
        """What each alternative can get, by claim and name."""
        self._traits: list[Devices] = []
        """Sets of devices that some request distinguishes from others."""
        self._shared: Devices = 0
        self._likeness: dict[DeviceId, int] = {}
        self._kinds: dict[Hashable, int] = {}
        self._constraints = Picks(supply, claims, set(), look).constraints
        self._values: dict[tuple[int, int, str | None], dict[Hashable, Devices]] = {}
        """The devices by value of an attribute, by claim, the constraint's place, and how it is derived.

        Of a value that is None, those that have no such attribute.
        """
        self._users: dict[CounterId, Users] = {}

    def survey(self) -> Iterator[None]:
        """Look at each device as each request would; stops after each look, because it takes long."""
        certain = yield from self._look()
        certain &= yield from self._derive()
        yield from self._value()
        ordered = 0
        for claim, ask in self._alternatives():
            if self._order_counts(claim, ask):
                ordered |= self._for[claim, ask.name]
        for i, device in enumerate(self._devices):
            self._likeness[device.id] = self._kind(device, alone=bool(ordered >> i & 1))
            yield
        self._users = self._counted()
        self.looks_ahead = certain and not self._may_break()

    def likeness(self, device: Device) -> int:
        """A number that is equal for devices that may take each other's place."""
        return self._likeness[device.id]

    def state(self, picks: Picks, claim: int, request: int) -> Hashable:
        """All that decides what comes of the requests from that one on."""
        whole = sorted(
            (self._likeness[pick.device.id], pick.claim == claim) for pick in picks.made if pick.taken is None
        )
        return (
            claim,
            request,
            picks.count(claim),
            tuple(whole),
            frozenset((name, frozenset(part.items())) for name, part in picks.consumed.items()),
            frozenset((name, amount) for name, amount in picks.counters.items() if amount),
            tuple(constraint.state for constraint in picks.constraints[claim]),
        )

    def enough(self, picks: Picks, claim: int, request: int, begun: Begun | None) -> bool:
        """Whether devices are left for the requests from that one on, or from the one after what has begun.

        No is certain; yes says nothing of capacity and distinct values.
        """
        # A set, because two claims may have one device, one of them for an administrator.
        gone = {pick.device.id for pick in picks.made if pick.taken is None}
        free = ~sum(1 << self._place[device] for device in gone)
        needs: list[Need] = []
        count = picks.count(claim)
        if begun is not None:
            ask, left, last = begun
            after = -1 << (self._place[last.id] + 1)
            count += left
            request += 1
            if not ask.admin_access:
                needs.append(Need(left, self._allowed(picks, claim, ask) & after))
        for asks in self._claims[claim].requests[request:]:
            need = self._need(picks, claim, asks)
            count += need.number if need else 0
            needs += [need] if need else []
        for later in range(claim + 1, len(self._claims)):
            needs += [n for asks in self._claims[later].requests if (n := self._need(picks, later, asks))]
        return count <= MAX_RESULTS and self._met(needs, free) and self._countable(picks, needs, free)

    def _look(self) -> Generator[None, None, bool]:
        """Which devices each alternative can get; whether no selector fails."""
        certain = True
        selected: dict[tuple[str, ...], Devices] = {}
        gettable: dict[Hashable, Devices] = {}
        for claim, ask in self._alternatives():
            if ask.selectors not in selected:
                matching, failing = yield from self._matching(ask.selectors)
                certain &= not failing
                selected[ask.selectors] = matching
                self._traits += [matching, failing]
            terms = ask.tolerations, tuple(ask.capacity.items()), ask.admin_access
            if terms not in gettable:
                gettable[terms], failing = yield from self._gettable(ask)
                certain &= not failing
            self._for[claim, ask.name] = selected[ask.selectors] & gettable[terms]
        return certain

    def _matching(self, selectors: tuple[str, ...]) -> Generator[None, None, tuple[Devices, Devices]]:
        """The devices that the selectors hold for, and those that they fail on."""
        matching = failing = 0
        for i, device in enumerate(self._devices):
            try:
                matching |= device.matches_all(selectors, self._look_up) << i
            except DeviceSelectorError:
                failing |= 1 << i
            yield
        return matching, failing

    def _gettable(self, ask: Ask) -> Generator[None, None, tuple[Devices, Devices]]:
        """Those that a request on such terms can get before anything is picked, and those it fails on."""
        supply = self._supply
        fitting = failing = tolerated = free = 0
        for i, device in enumerate(self._devices):
            try:
                fitting |= (supply.takes(ask, device) is not None) << i
            except CapacityError:
                failing |= 1 << i
            tolerated |= supply.tolerated(ask, device) << i
            free |= (supply.shares(device) or supply.is_free(ask, device)) << i
            yield
        self._traits += [fitting, failing, tolerated]
        return fitting & tolerated & free, failing

    def _derive(self) -> Generator[None, None, bool]:
        """Make the attributes that requests derive; whether no expression fails."""
        if not self._supply.features.derived_attributes:
            return True
        certain = True
        for expression in dict.fromkeys(x for _, ask in self._alternatives() for x in ask.derived.values()):
            failing = 0
            for i, device in enumerate(self._devices):
                failing |= (not device.derives(expression, self._look_up)) << i
                yield
            certain &= not failing
            self._traits.append(failing)
        return certain

    def _value(self) -> Iterator[None]:
        for claim, constraints in enumerate(self._constraints):
            asks = [ask for of, ask in self._alternatives() if of == claim]
            for place, constraint in enumerate(constraints):
                for derived in constraint.ways(asks):
                    having: dict[Hashable, Devices] = {}
                    for i, device in enumerate(self._devices):
                        for value in self._values_of(constraint, device, derived):
                            having[value] = having.get(value, 0) | 1 << i
                        yield
                    self._values[claim, place, derived] = having
                    self._traits += having.values()
        for i, device in enumerate(self._devices):
            self._shared |= self._supply.shares(device) << i

    def _values_of(
        self, constraint: DeviceConstraintState, device: Device, derived: str | None
    ) -> Iterable[Hashable]:
        if derived is not None and not device.derives(derived, self._look_up):
            return (None,)
        values = constraint.values_of(device, derived)
        return (None,) if values is None else values

    def _kind(self, device: Device, *, alone: bool) -> int:
        place = self._place[device.id]
        kind: Hashable = device.id
        if not alone and not self._supply.shares(device):
            kind = (
                sum((trait >> place & 1) << i for i, trait in enumerate(self._traits)),
                frozenset(device.consumes.items()),
                device.groups,
                self._supply.in_use(device.id),
                bool(device.spec.binding_conditions),
            )
        return self._kinds.setdefault(kind, len(self._kinds))

    def _counted(self) -> dict[CounterId, Users]:
        """Who uses each counter; a shared device may be in use, and takes nothing more then."""
        taken: dict[CounterId, list[tuple[int, Devices]]] = {}
        for i, device in enumerate(self._devices):
            if not self._supply.shares(device):
                for counter, amount in device.consumes.items():
                    taken.setdefault(counter, []).append((amount, 1 << i))
        return {
            counter: Users(sum(device for _, device in users), sorted(users))
            for counter, users in taken.items()
        }

    def _alternatives(self) -> Iterator[tuple[int, Ask]]:
        for claim, asked in enumerate(self._claims):
            for asks in asked.requests:
                for ask in asks:
                    yield claim, ask

    def _order_counts(self, claim: int, ask: Ask) -> bool:
        """Whether it matters which of two equal devices is left for the request.

        A request for all devices stops at the first one that is in use, or ends in an error at the first one
        that breaks a constraint, whichever comes first.
        """
        return any(
            ask.every or (constraint.compares_neighbours and ask.count > 1)
            for constraint in self._constraints[claim]
            if constraint.concerns(ask)
        )

    def _may_break(self) -> bool:
        """Whether a request for all devices may end the search with an error."""
        return any(
            ask.every and any(c.concerns(ask) for c in self._constraints[claim])
            for claim, ask in self._alternatives()
        )

    def _allowed(self, picks: Picks, claim: int, ask: Ask) -> Devices:
        """What the alternative can get by the values that constraints have settled on."""
        devices = self._for[claim, ask.name]
        for place, constraint in enumerate(picks.constraints[claim]):
            if constraint.concerns(ask):
                having = self._values[claim, place, constraint.derived_by(ask)]
                devices &= ~having.get(None, 0)
                if constraint.wanted is not None:
                    devices &= reduce(operator.or_, (having.get(value, 0) for value in constraint.wanted), 0)
        return devices

    def _need(self, picks: Picks, claim: int, asks: Sequence[Ask]) -> Need | None:
        """What a request needs at least; None where that is not known before it is tried."""
        if any(ask.every or ask.admin_access for ask in asks):
            return None
        devices = 0
        for ask in asks:
            devices |= self._allowed(picks, claim, ask)
        return Need(min(ask.count for ask in asks), devices)

    def _met(self, needs: Sequence[Need], free: Devices) -> bool:
        """Whether each need can have its own devices, and shared ones beside."""
        owners: dict[int, int] = {}
        whole = [need.devices & free & ~self._shared for need in needs]
        for number, need in enumerate(needs):
            for _ in range(need.number - (need.devices & self._shared).bit_count()):
                if not _assign(number, whole, owners):
                    return False
        return True

    def _countable(self, picks: Picks, needs: Sequence[Need], free: Devices) -> bool:
        """Whether each shared counter suffices if every need takes the devices that use least of it."""
        for counter, users in self._users.items():
            left = self._supply.counters[counter] - picks.counters[counter]
            for need in needs:
                devices = need.devices & free
                missing = need.number - (devices & ~users.devices).bit_count()
                if missing > 0:
                    amounts = (amount for amount, device in users.ascending if devices & device)
                    left -= sum(islice(amounts, missing))
                    if left < 0:
                        return False
        return True


def _assign(number: int, wanted: Sequence[Devices], owners: dict[int, int]) -> bool:
    """Give one more device to that need, if others can make do with what is left: an augmenting path.

    Source: Kuhn's algorithm for bipartite matching.
    """
    came_from: dict[int, tuple[int, int]] = {}
    seen, queue = 0, [number]
    for need in queue:
        left = wanted[need] & ~seen
        seen |= left
        while left:
            device = (left & -left).bit_length() - 1
            left &= left - 1
            owner = owners.get(device)
            if owner is None:
                _hand_on(device, need, came_from, owners)
                return True
            if owner != number and owner not in came_from:
                came_from[owner] = (need, device)
                queue.append(owner)
    return False


def _hand_on(device: int, need: int, came_from: dict[int, tuple[int, int]], owners: dict[int, int]) -> None:
    """Let each need on the path take the device found for it, and leave its former one to the one before."""
    while True:
        owners[device] = need
        if need not in came_from:
            return
        need, device = came_from[need]
