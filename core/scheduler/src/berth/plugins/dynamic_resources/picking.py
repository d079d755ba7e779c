"""What a search has picked so far, and whether a request may have one more device beside that.

Source: dynamic-resource-allocation structured/internal/stable/allocator_stable.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from berth.cel import Look, look_at_nothing
from berth.plugins.dynamic_resources.asking import Ask, ClaimAsk
from berth.plugins.dynamic_resources.capacity import CapacityError, Consumed
from berth.plugins.dynamic_resources.constraints import DeviceConstraintState, add_all, constraint_states
from berth.plugins.dynamic_resources.devices import (
    ConversionError,
    CounterId,
    Device,
    DeviceId,
    DeviceSelectorError,
    agree,
)
from berth.plugins.dynamic_resources.supply import Supply

MAX_RESULTS = 32
"""A claim never gets more devices than this."""

MISSING_KEY = "no such key:"
GUIDANCE = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)


class AllocationError(Exception):
    """A request that cannot be decided now: the whole cycle fails."""


class UnsuitableNodeError(AllocationError):
    """A request for all devices that one node cannot serve; others may.

    Upstream v1.36 fails the whole cycle for such a node (kubernetes/kubernetes#141829).
    """


class Pick(msgspec.Struct, frozen=True):
    """A device for a request; `taken` where it is shared with others."""

    claim: int
    ask: Ask
    device: Device
    taken: Consumed | None
    constraints: Sequence[DeviceConstraintState]


class Picks:
    """The devices picked for the claims of a pod, the last one first to be taken back."""

    def __init__(
        self,
        supply: Supply,
        claims: Sequence[ClaimAsk],
        unsure: set[tuple[str, ...]],
        look: Look = look_at_nothing,
    ) -> None:
        self.made: list[Pick] = []
        self.counters: Counter[CounterId] = Counter()
        """What the pod's own devices take."""
        self.consumed: dict[DeviceId, Counter[str]] = {}
        """What the pod's own shares of devices take."""
        self.constraints = [constraint_states(claim.constraints, supply.features) for claim in claims]
        self._supply = supply
        self._claims = claims
        self._unsure = unsure
        self._look = look
        self._used: Counter[DeviceId] = Counter()
        """How many of the pod's claims have each device as a whole; access for administrators counts, too."""
        self._own: set[tuple[int, DeviceId]] = set()

    def pick(self, claim: int, ask: Ask, device: Device) -> bool:
        """Take the device if it can be had.

        Raises: AllocationError.
        """
        eligible = self._free(claim, ask, device) and self._selected(claim, ask, device)
        taken = self.takes(claim, ask, device) if eligible else None
        if taken is None or not self._counters_left(device) or not self._compatible(device):
            return False
        return self._supply.tolerated(ask, device) and self._add(claim, ask, device, taken)

    def take_back(self) -> None:
        """Let go of the last device."""
        pick = self.made.pop()
        device = pick.device
        for constraint in pick.constraints:
            constraint.remove(pick.ask)
        if pick.taken is None:
            self._own.discard((pick.claim, device.id))
            self._used[device.id] -= 1
        else:
            own = self.consumed[device.id]
            own.subtract(pick.taken.nanos)
            own[_USES] -= 1
            if not own[_USES]:
                del self.consumed[device.id]
                self._own.discard((pick.claim, device.id))
        if not self._in_use(device.id):
            self.counters.subtract(device.consumes)

    def count(self, claim: int) -> int:
        """How many devices that claim has."""
        return sum(pick.claim == claim for pick in self.made)

    def takes(self, claim: int, ask: Ask, device: Device) -> Consumed | None:
        """What the request takes of the device's capacity, None where there is too little.

        Raises: AllocationError where no device can count what is asked for.
        """
        try:
            taken = self._supply.takes(ask, device)
        except CapacityError as error:
            raise AllocationError(f"{self.words(claim, ask)}: {error}") from error
        return taken if taken is not None and self._capacity_left(device, taken.nanos) else None

    def broken(self, claim: int, ask: Ask, error: DeviceSelectorError) -> AllocationError:
        """The selector's failure, as upstream words it."""
        source = ask.source_of(error.expression, self._claims[claim].claim)
        if not self._supply.features.rules.selector_errors_name_the_device:
            return AllocationError(f"{source}: {error}")
        if isinstance(error, ConversionError):
            return AllocationError(f"convert Device {error.device}: {error.cause}")
        on_device = f" on device {error.device}" if error.device else ""
        return AllocationError(f"{source}{on_device}: {error}{GUIDANCE if MISSING_KEY in str(error) else ''}")

    def derives(self, ask: Ask) -> bool:
        """Whether the request derives attributes of each device that it selects."""
        return bool(ask.derived) and self._supply.features.derived_attributes

    def words(self, claim: int, ask: Ask) -> str:
        """The request, as upstream names it in errors."""
        return f"claim {self._claims[claim].claim.key}, request {ask.own_name}"

    def _free(self, claim: int, ask: Ask, device: Device) -> bool:
        supply = self._supply
        if not supply.shares(device):
            if (claim, device.id) in self._own:
                return False
            if device.spec.binding_conditions and not supply.features.binding_conditions:
                return False
            if self._used[device.id] and not ask.admin_access:
                return False
        return supply.is_free(ask, device)

    def _selected(self, claim: int, ask: Ask, device: Device) -> bool:
        try:
            if ask.selectors in self._unsure and not device.matches_all(ask.selectors, self._look):
                return False
            if self.derives(ask):
                for expression in ask.derived.values():
                    device.kind.derived(expression, device.id, self._look)
        except DeviceSelectorError as error:
            raise self.broken(claim, ask, error) from error
        return True

    def _capacity_left(self, device: Device, taken: dict[str, int]) -> bool:
        """Whether a shared device has that much left; one that is not shared is taken as a whole."""
        if not device.spec.allow_multiple_allocations:
            return True
        others = self._supply.usage.consumed.get(device.id, _NOTHING)
        own = self.consumed.get(device.id, _NOTHING)
        key, driver = self._supply.features.capacity.key, device.id.driver
        return all(
            others[key(name, driver)] + own[name] + amount <= device.capacity[name]
            for name, amount in taken.items()
        )

    def _counters_left(self, device: Device) -> bool:
        if not device.consumes:
            return True
        if not self._supply.features.shared_counters:
            return False
        if self._in_use(device.id):
            return True
        if (device.id.driver, device.id.pool) in self._supply.overdrawn:
            return False
        left, own = self._supply.counters, self.counters
        return all(own[name] + amount <= left[name] for name, amount in device.consumes.items())

    def _compatible(self, device: Device) -> bool:
        """Whether it may be in use beside what is, and what was picked, of its counter sets."""
        if not (device.consumes and self._supply.features.compatibility_groups):
            return True
        pool = device.id.driver, device.id.pool
        picked = (pick.device.groups for pick in self.made if pick.device.id[:2] == pool)
        return all(agree(device.groups, each) for each in (self._supply.groups_in_use(pool), *picked))

    def _in_use(self, device: DeviceId) -> bool:
        """Whether a shared device is in use, so that one more use takes nothing more out of counters."""
        return device in self.consumed or device in self._supply.usage.consumed

    def _add(self, claim: int, ask: Ask, device: Device, taken: Consumed) -> bool:
        """Take the device if no constraint is against it."""
        concerned = [c for c in self.constraints[claim] if c.concerns(ask)]
        constraints = add_all(concerned, ask, device)
        if constraints is None and ask.every:
            problem = (
                f"cannot add device {'/'.join(device.id)} because a claim constraint would not be satisfied"
            )
            raise UnsuitableNodeError(f"{self.words(claim, ask)}: {problem}")
        if constraints is None:
            return False
        self._take(Pick(claim, ask, device, taken if self._supply.shares(device) else None, constraints))
        return True

    def _take(self, pick: Pick) -> None:
        device = pick.device
        self.made.append(pick)
        self._own.add((pick.claim, device.id))
        if not self._in_use(device.id):
            self.counters.update(device.consumes)
        if pick.taken is None:
            self._used[device.id] += 1
        else:
            own = self.consumed.setdefault(device.id, Counter())
            own.update(pick.taken.nanos)
            own[_USES] += 1


_USES = ""
_NOTHING: Counter[str] = Counter()
