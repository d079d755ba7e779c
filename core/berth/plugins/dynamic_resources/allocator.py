"""The search for devices that meet all claims of a pod on nodes with one view.

Depth first, and the first solution counts: claims in order, their requests in order, alternatives in order,
devices as combinations in the order of their pools.

    claim -> request -> alternative -> device -> ... -> next request -> next claim -> solved
                                          ^ what does not lead to a solution is taken back

Source: dynamic-resource-allocation structured allocator (Kubernetes v1.36); spec/plugins.md 5.19.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from berth.objects.taint import TaintEffect
from berth.plugins.dynamic_resources.asking import Ask, ClaimAsk
from berth.plugins.dynamic_resources.capacity import Consumed, consumed
from berth.plugins.dynamic_resources.constraints import Constraint, add_all
from berth.plugins.dynamic_resources.inventory import (
    CounterId,
    Device,
    DeviceId,
    Inventory,
    SelectorError,
    View,
)
from berth.plugins.dynamic_resources.usage import DeviceUsage

MAX_RESULTS = 32
"""A claim never gets more devices than this."""

HARD = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})


class AllocationError(Exception):
    """A request that cannot be decided now: the whole cycle fails."""


class OutOfTimeError(Exception):
    """The search took longer than a node may take."""


@dataclass(frozen=True, slots=True)
class Features:
    """Which of the optional parts are on."""

    taints: bool = True
    shared_counters: bool = True
    consumable_capacity: bool = True
    binding_conditions: bool = True


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for a request; `taken` where it is shared with others."""

    claim: int
    ask: Ask
    device: Device
    taken: Consumed | None
    constraints: Sequence[Constraint]


@dataclass(frozen=True, slots=True)
class _Step:
    """An alternative that is being tried, and the devices it may get."""

    claim: int
    request: int
    ask: Ask
    devices: Sequence[Device]


Solution = list[list[Pick]]
"""The picks of each claim, in order."""


class Supply:
    """What there is and what is in use, for all searches of one cycle."""

    def __init__(self, inventory: Inventory, usage: DeviceUsage, features: Features) -> None:
        self.inventory = inventory
        self.usage = usage
        self.features = features
        self.counters = Counter(inventory.counters)
        for device_id in (*usage.holders, *usage.consumed):
            device = inventory.devices.get(device_id)
            if device is not None:
                self.counters.subtract(device.consumes)


class Search:
    """One search. `on_time` is asked now and then whether to go on."""

    def __init__(
        self, supply: Supply, view: View, claims: Sequence[ClaimAsk], on_time: Callable[[], bool]
    ) -> None:
        self._supply = supply
        self._view = view
        self._claims = claims
        self._on_time = on_time
        self._picks: list[Pick] = []
        self._used: Counter[DeviceId] = Counter()
        """How many of the pod's claims have each device as a whole; access for administrators counts, too."""
        self._own: set[tuple[int, DeviceId]] = set()
        self._consumed: dict[DeviceId, Counter[str]] = {}
        self._counters: Counter[CounterId] = Counter()
        self._lost = False
        """Whether counters were taken for devices that could not be had after all.

        Upstream takes them before it looks at taints and constraints, for good: so does this.
        """
        self._constraints = [[Constraint(c) for c in claim.constraints] for claim in claims]
        self._unsure: set[tuple[str, ...]] = set()
        """Selectors that fail on some device."""
        self._everything: dict[tuple[int, str], list[Device]] = {}
        """What requests for all devices get, by claim and name of the request."""

    def run(self) -> Solution | None:
        """Devices for every claim; None where there is no solution.

        Raises: AllocationError, OutOfTimeError.
        """
        for claim in range(len(self._claims)):
            self._check_count(claim)
        if not self._claim(0):
            return None
        solution: Solution = [[] for _ in self._claims]
        for pick in self._picks:
            solution[pick.claim].append(pick)
        return solution

    def _check_count(self, claim: int) -> None:
        """A claim never gets more devices than so many, whatever there is."""
        asked = self._claims[claim]
        least = sum(min(self._count(claim, ask) for ask in asks) for asks in asked.requests)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {asked.claim.key}: number of requested devices {least} "
                f"exceeds the claim limit of {MAX_RESULTS}"
            )

    def _count(self, claim: int, ask: Ask) -> int:
        """How many devices the request gets; all of them are those that others have left room on."""
        if not ask.every:
            return ask.count
        self._check_pools(claim, ask)
        devices = [d for d in self._matching(claim, ask) if self._takes(ask, d) is not None]
        self._everything[claim, ask.name] = devices
        return len(devices)

    def _claim(self, claim: int) -> bool:
        return claim == len(self._claims) or self._request(claim, 0)

    def _request(self, claim: int, request: int) -> bool:
        requests = self._claims[claim].requests
        if request == len(requests):
            return self._claim(claim + 1)
        for ask in requests[request]:
            if ask.every:
                step = _Step(claim, request, ask, self._everything[claim, ask.name])
                found = bool(step.devices) and self._each(step, 0)
            else:
                step = _Step(claim, request, ask, self._possible(ask))
                found = self._combination(step, ask.count, 0)
            if found:
                return True
        return False

    def _possible(self, ask: Ask) -> Sequence[Device]:
        """The devices that match; where a selector fails on some device, all of them, to be asked one by one.

        A device that the search does not come to, or that is in use, does no harm then.
        """
        try:
            return self._view.matching(ask.selectors)
        except SelectorError:
            self._unsure.add(ask.selectors)
            return self._view.usable

    def _selected(self, claim: int, ask: Ask, device: Device) -> bool:
        try:
            return ask.selectors not in self._unsure or device.matches_all(ask.selectors)
        except SelectorError as error:
            raise self._broken(claim, ask, error) from error

    def _matching(self, claim: int, ask: Ask) -> list[Device]:
        try:
            return self._view.matching(ask.selectors)
        except SelectorError as error:
            raise self._broken(claim, ask, error) from error

    def _broken(self, claim: int, ask: Ask, error: SelectorError) -> AllocationError:
        return AllocationError(f"{ask.source_of(error.expression, self._claims[claim].claim)}: {error}")

    def _check_pools(self, claim: int, ask: Ask) -> None:
        """All devices can only be had of pools that are known in full."""
        for pool, _ in self._view.pools:
            if pool.problem:
                problem = f"asks for all devices, but resource pool {pool.full_name} {pool.problem}"
                raise AllocationError(f"{self._words(claim, ask)}: {problem}")

    def _words(self, claim: int, ask: Ask) -> str:
        return f"claim {self._claims[claim].claim.key}, request {ask.own_name}"

    def _each(self, step: "_Step", at: int) -> bool:
        if at == len(step.devices):
            return self._request(step.claim, step.request + 1)
        if not self._pick(step.claim, step.ask, step.devices[at]):
            return False
        if self._each(step, at + 1):
            return True
        self._take_back()
        return False

    def _combination(self, step: "_Step", left: int, start: int) -> bool:
        if left == 0:
            return self._request(step.claim, step.request + 1)
        in_vain: set[object] = set()
        for at in range(start, len(step.devices) - left + 1):
            device = step.devices[at]
            # What leads nowhere with one device leads nowhere with another that is just like it.
            if in_vain and not self._lost and device.likeness in in_vain:
                continue
            if not self._pick(step.claim, step.ask, device):
                continue
            if self._combination(step, left - 1, at + 1):
                return True
            self._take_back()
            in_vain.add(device.likeness)
        return False

    def _pick(self, claim: int, ask: Ask, device: Device) -> bool:
        """Take the device if it can be had."""
        if not self._on_time():
            raise OutOfTimeError
        eligible = self._free(claim, ask, device) and self._selected(claim, ask, device)
        taken = self._takes(ask, device) if eligible else None
        if taken is None or not self._counters_left(device):
            return False
        picked = self._tolerated(ask, device) and self._add(claim, ask, device, taken)
        if not picked and device.consumes and not self._in_use(device.id):
            self._counters.update(device.consumes)
            self._lost = True
        return picked

    def _add(self, claim: int, ask: Ask, device: Device, taken: Consumed) -> bool:
        """Take the device if no constraint is against it."""
        concerned = [c for c in self._constraints[claim] if c.concerns(ask)]
        constraints = add_all(concerned, ask, device)
        if constraints is None and ask.every:
            problem = (
                f"cannot add device {'/'.join(device.id)} because a claim constraint would not be satisfied"
            )
            raise AllocationError(f"{self._words(claim, ask)}: {problem}")
        if constraints is None:
            return False
        shareable = device.spec.allow_multiple_allocations and self._supply.features.consumable_capacity
        shared = taken if shareable else None
        self._take(Pick(claim, ask, device, shared, constraints))
        return True

    def _free(self, claim: int, ask: Ask, device: Device) -> bool:
        if len(self._picks) >= MAX_RESULTS and self._picked(claim) >= MAX_RESULTS:
            return False
        spec, features = device.spec, self._supply.features
        if spec.allow_multiple_allocations and features.consumable_capacity:
            return device.id not in self._supply.usage.holders
        if (claim, device.id) in self._own:
            return False
        if spec.binding_conditions and not features.binding_conditions:
            return False
        if ask.admin_access:
            return True
        usage = self._supply.usage
        return (
            not self._used[device.id] and device.id not in usage.holders and device.id not in usage.consumed
        )

    def _picked(self, claim: int) -> int:
        return sum(pick.claim == claim for pick in self._picks)

    def _tolerated(self, ask: Ask, device: Device) -> bool:
        if not device.spec.taints or not self._supply.features.taints:
            return True
        return all(
            taint.effect not in HARD or any(t.tolerates(taint) for t in ask.tolerations)
            for taint in device.spec.taints
        )

    def _takes(self, ask: Ask, device: Device) -> Consumed | None:
        """What the request takes of the device's capacity, None where there is too little."""
        if not self._supply.features.consumable_capacity:
            return Consumed()
        taken = consumed(device, ask.capacity)
        return taken if taken is not None and self._capacity_left(device, taken.nanos) else None

    def _capacity_left(self, device: Device, taken: dict[str, int]) -> bool:
        """Whether a shared device has that much left; one that is not shared is taken as a whole."""
        if not device.spec.allow_multiple_allocations:
            return True
        others = self._supply.usage.consumed.get(device.id, _NOTHING)
        own = self._consumed.get(device.id, _NOTHING)
        total = device.capacity
        return all(others[name] + own[name] + amount <= total[name] for name, amount in taken.items())

    def _counters_left(self, device: Device) -> bool:
        if not device.consumes:
            return True
        if not self._supply.features.shared_counters:
            return False
        if self._in_use(device.id):
            return True
        left, own = self._supply.counters, self._counters
        return all(own[name] + amount <= left[name] for name, amount in device.consumes.items())

    def _in_use(self, device: DeviceId) -> bool:
        """Whether a shared device is in use, so that one more use takes nothing more out of counters."""
        return device in self._consumed or device in self._supply.usage.consumed

    def _take(self, pick: Pick) -> None:
        device = pick.device
        self._picks.append(pick)
        self._own.add((pick.claim, device.id))
        if not self._in_use(device.id):
            self._counters.update(device.consumes)
        if pick.taken is None:
            self._used[device.id] += 1
        else:
            own = self._consumed.setdefault(device.id, Counter())
            own.update(pick.taken.nanos)
            own[_USES] += 1

    def _take_back(self) -> None:
        pick = self._picks.pop()
        device = pick.device
        for constraint in pick.constraints:
            constraint.remove(pick.ask)
        if pick.taken is None:
            self._own.discard((pick.claim, device.id))
            self._used[device.id] -= 1
        else:
            own = self._consumed[device.id]
            own.subtract(pick.taken.nanos)
            own[_USES] -= 1
            if not own[_USES]:
                del self._consumed[device.id]
                self._own.discard((pick.claim, device.id))
        if not self._in_use(device.id):
            self._counters.subtract(device.consumes)


_USES = ""
_NOTHING: Counter[str] = Counter()
