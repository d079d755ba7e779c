"""Which devices are in use: by allocated claims, and by allocations in flight.

Source: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from copy import copy

from berth.framework.mirrors.claim_tracker import ChangedClaim, ClaimTracker
from berth.objects.devices.resource_claims import DeviceResult, ResourceClaim
from berth.objects.quantity import nanos
from berth.plugins.dynamic_resources.capacity import AS_WRITTEN, CapacityRules
from berth.plugins.dynamic_resources.devices import DeviceId, Groups

Results = tuple[DeviceResult, ...]
NONE: frozenset[DeviceId] = frozenset()


class DeviceUsage:
    """How many hold each device, and how much of shared ones is taken; follows the claims as they change.

    With `grouped` also which compatibility groups they had. Units: consumed, nanos.
    """

    def __init__(
        self, claims: ClaimTracker, rules: CapacityRules = AS_WRITTEN, *, grouped: bool = False
    ) -> None:
        self._grouped = grouped
        self._claims = claims
        self._rules = rules
        self._held: dict[ChangedClaim, Results] = {}
        self.holders: Counter[DeviceId] = Counter()
        """Devices that are taken as a whole."""
        self.consumed: dict[DeviceId, Counter[str]] = {}
        """What is taken of devices that many may share, by capacity."""
        self.groups: dict[DeviceId, Counter[Groups]] = {}
        """The compatibility groups that devices in use had at their allocations."""
        self._seen = claims.changes.end
        self._before: dict[DeviceId, Hashable] = {}
        """The use of the devices that were touched since the last time, as it was then."""
        self._read(_everything(claims))
        self._before.clear()

    def without(self, claims: Iterable[str]) -> "DeviceUsage":
        """Return the use once these stored claims, by key, have no devices. Cost: O(devices in use)."""
        other = copy(self)
        other._part()  # noqa: SLF001 - the same class
        for key in claims:
            other._replace(ChangedClaim(key, in_flight=False), ())
        return other

    def _part(self) -> None:
        """Share no table with what this is a copy of."""
        self._held, self._before = dict(self._held), {}
        self.holders = self.holders.copy()
        self.consumed = {device: taken.copy() for device, taken in self.consumed.items()}

    def refresh(self) -> AbstractSet[DeviceId]:
        """Take in what changed since the last time; returns the devices whose use is another one now.

        A claim that was in flight and is stored now, with the same devices, changes nothing.
        """
        changes = self._claims.changes
        missed = changes.since(self._seen)
        self._seen = changes.end
        if missed is None:
            missed = (*self._held, *_everything(self._claims))
        if missed:
            self._read(dict.fromkeys(missed))
        before = self._before
        if not before:
            return NONE
        self._before = {}
        return {device for device, use in before.items() if use != self._use(device)}

    def _use(self, device: DeviceId) -> Hashable:
        """Equal where searches see no difference: that many have the device as a whole is as if one had."""
        taken = self.consumed.get(device)
        groups = frozenset(self.groups[device]) if device in self.groups else None
        return device in self.holders, None if taken is None else frozenset(taken.items()), groups

    def _read(self, changed: Iterable[ChangedClaim]) -> None:
        for change in changed:
            claim = (
                self._claims.in_flight(change.name) if change.in_flight else self._claims.by_key(change.name)
            )
            self._replace(change, _results(claim))

    def _replace(self, change: ChangedClaim, results: Results) -> None:
        before = self._held.get(change, ())
        if before == results:
            return
        if results:
            self._held[change] = results
        else:
            del self._held[change]
        # The new ones first: a device that is held before and after is not let go in between.
        for result in results:
            self._count(result, 1)
        for result in before:
            self._count(result, -1)

    def _count(self, result: DeviceResult, sign: int) -> None:
        device = DeviceId(result.driver, result.pool, result.device)
        if device not in self._before:
            self._before[device] = self._use(device)
        if self._grouped:
            self._count_groups(device, result, sign)
        if result.share_id is None:
            self.holders[device] += sign
            if not self.holders[device]:
                del self.holders[device]
            return
        taken = self.consumed.setdefault(device, Counter())
        taken[""] += sign
        for name, amount in result.consumed_capacity.items():
            taken[self._rules.key(name, result.driver)] += sign * nanos(amount)
        if not taken[""]:
            del self.consumed[device]

    def _count_groups(self, device: DeviceId, result: DeviceResult, sign: int) -> None:
        had = frozenset((name, frozenset(each)) for name, each in result.compatibility_groups.items())
        of_device = self.groups.setdefault(device, Counter())
        of_device[had] += sign
        if not of_device[had]:
            del of_device[had]
        if not of_device:
            del self.groups[device]


def _everything(claims: ClaimTracker) -> list[ChangedClaim]:
    stored = [ChangedClaim(claim.key, in_flight=False) for claim in claims]
    return stored + [ChangedClaim(claim.uid, in_flight=True) for claim in claims.all_in_flight()]


def _results(claim: ResourceClaim | None) -> Results:
    """The devices that the claim keeps others from; access for administrators keeps none from it."""
    if claim is None or claim.allocation is None:
        return ()
    return tuple(r for r in claim.allocation.devices.results if not r.admin_access)
