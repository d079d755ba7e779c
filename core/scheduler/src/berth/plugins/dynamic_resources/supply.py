"""What there is and what is in use, as it is now: followed while claims and slices change.

    claims --DeviceUsage--> devices whose use changed --> the pools' states --> the views that changed

A state is all of a pool's use that a search can see: equal states of equal pools have the same outcome.

Source: dynamic-resource-allocation structured/internal/stable/allocator_stable.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Hashable, Iterable

import msgspec
import numpy as np

from berth.config.releases.rules import DEFAULT_RULES, Rules
from berth.framework.mirrors.slice_tracker import SliceTracker
from berth.objects.taint import TaintEffect
from berth.plugins.dynamic_resources.asking import Ask
from berth.plugins.dynamic_resources.capacity import AS_WRITTEN, CapacityRules, Consumed, consumed
from berth.plugins.dynamic_resources.devices import CounterId, Device, DeviceId, Groups
from berth.plugins.dynamic_resources.inventory import Inventory, ReachableDevices
from berth.plugins.dynamic_resources.pools import DevicePool
from berth.plugins.dynamic_resources.usage import DeviceUsage
from berth.snapshot.columns.growing import Ints

HARD = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})


NO_GROUPS: Groups = frozenset()
_NO_GROUPS: Counter[tuple[str, frozenset[str]]] = Counter()


class Features(msgspec.Struct, frozen=True):
    """Which of the optional parts are on."""

    taints: bool = True
    shared_counters: bool = True
    consumable_capacity: bool = True
    binding_conditions: bool = True
    list_attributes: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False
    capacity: CapacityRules = AS_WRITTEN
    rules: Rules = DEFAULT_RULES


class _PoolUse:
    """What of a pool is in use: devices taken as a whole, as bits by place, and shares by place."""

    __slots__ = ("shares", "state", "whole")

    def __init__(self) -> None:
        self.whole = 0
        self.shares: dict[int, Hashable] = {}
        self.state: Hashable = None
        """All of it as one value, None where that is to be made again."""


class Supply:
    """What there is and what is in use, for all searches of one plugin; to be refreshed before each cycle."""

    def __init__(self, inventory: Inventory, usage: DeviceUsage, features: Features) -> None:
        self.usage = usage
        self.features = features
        self._slices_seen = 0
        self._begin(inventory)

    def _begin(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self.counters: Counter[CounterId] = Counter()
        """What is left of each counter."""
        for pool in inventory.pools:
            self.counters.update(pool.counters)
        self.overdrawn: set[tuple[str, str]] = set()
        """Pools of which more is in use than there is; no further device of theirs may consume counters."""
        self._charged: dict[DeviceId, int] = {}
        self._grouped: dict[DeviceId, Groups] = {}
        self._groups: dict[tuple[str, str], Counter[tuple[str, frozenset[str]]]] = {}
        """How many devices in use have which groups of a counter set, by pool."""
        self._uses: dict[int, _PoolUse] = {}
        self._changes = 1
        self._changed_at: Ints = np.zeros(0, dtype=np.int64)
        self._follow((*self.usage.holders, *self.usage.consumed))

    def refresh(self, slices: SliceTracker) -> None:
        """Follow what changed of slices and claims since the last time."""
        changed = self.usage.refresh()
        if self._slices_seen != slices.generation:
            self._slices_seen = slices.generation
            self._begin(Inventory(slices, self.inventory))
        elif changed:
            self._follow(changed)

    def _follow(self, changed: Iterable[DeviceId]) -> None:
        inventory = self.inventory
        pools = set()
        for device_id in changed:
            number = inventory.number_of.get((device_id.driver, device_id.pool))
            pool = None if number is None else inventory.pools[number]
            place = None if pool is None else pool.place_of.get(device_id.device)
            if self.features.compatibility_groups:
                self._group(device_id, None if place is None or pool is None else pool.devices[place])
                if number is not None and place is None:
                    self._uses.setdefault(number, _PoolUse()).state = None
                    pools.add(number)
            if number is None or pool is None or place is None:
                continue
            use = self._uses.setdefault(number, _PoolUse())
            self._note(use, place, device_id)
            if pool.devices[place].consumes:
                self._charge(pool, pool.devices[place])
            pools.add(number)
        if pools:
            self._changes += 1
            changed_at = self.changed_at()
            for number in pools:
                changed_at[inventory.views_of[number]] = self._changes

    def _note(self, use: _PoolUse, place: int, device: DeviceId) -> None:
        if device in self.usage.holders:
            use.whole |= 1 << place
        else:
            use.whole &= ~(1 << place)
        taken = self.usage.consumed.get(device)
        if taken is None:
            use.shares.pop(place, None)
        else:
            use.shares[place] = frozenset(taken.items())
        use.state = None

    def _group(self, device_id: DeviceId, device: Device | None) -> None:
        """Count the groups that the device had at its allocations; of one that had none, that it has none."""
        found: set[tuple[str, frozenset[str]]] = set()
        for snapshot in self.usage.groups.get(device_id, ()):
            sets = dict.fromkeys((name for name, _ in device.groups), frozenset[str]()) if device else {}
            found |= (sets | dict(snapshot)).items()
        in_pool = self._groups.setdefault(device_id[:2], Counter())
        in_pool.update(found)
        for each in self._grouped.pop(device_id, ()):
            in_pool[each] -= 1
            if not in_pool[each]:
                del in_pool[each]
        if found:
            self._grouped[device_id] = frozenset(found)

    def groups_in_use(self, pool: tuple[str, str]) -> list[tuple[str, frozenset[str]]]:
        """The groups of devices in use of a driver's pool, by counter set."""
        return list(self._groups.get(pool, _NO_GROUPS))

    def _charge(self, pool: DevicePool, device: Device) -> None:
        """Count what the device's use takes out of counters: once, however many share it."""
        times = (device.id in self.usage.holders) + (device.id in self.usage.consumed)
        more = times - self._charged.get(device.id, 0)
        if not more:
            return
        self._charged[device.id] = times
        if not times:
            del self._charged[device.id]
        for name, amount in device.consumes.items():
            self.counters[name] -= more * amount
        if any(self.counters[counter] < 0 for counter in pool.counters):
            self.overdrawn.add((pool.driver, pool.name))
        else:
            self.overdrawn.discard((pool.driver, pool.name))

    @property
    def changes(self) -> int:
        """How often something changed; see `changed_at`."""
        return self._changes

    def changed_at(self) -> Ints:
        """For each view, what `changes` was when it last changed; not to be written to, and not to be kept.

        Shapes: result int64 (number of views,).
        """
        missing = len(self.inventory.views) - self._changed_at.size
        if missing:
            new = np.full(missing, self._changes, dtype=np.int64)
            self._changed_at = np.concatenate((self._changed_at, new))
        return self._changed_at

    def state(self, view: ReachableDevices) -> Hashable:
        """Equal where all that a search can see of what is in use is equal, for views of one shape."""
        return tuple([self._state(number) for number in view.numbers])

    def _state(self, number: int) -> Hashable:
        use = self._uses.get(number)
        if use is None:
            use = self._uses[number] = _PoolUse()
        if use.state is None:
            counters = self.inventory.pools[number].counters
            left = tuple([self.counters[name] for name in counters]) if counters else ()
            pool = self.inventory.pools[number]
            groups = frozenset(self.groups_in_use((pool.driver, pool.name))) if self._groups else NO_GROUPS
            use.state = use.whole, frozenset(use.shares.items()), left, groups
        return use.state

    def in_use(self, device: DeviceId) -> bool:
        """Whether another claim keeps the device from being taken as a whole."""
        shared = self.features.rules.shared_devices_stay_shared and device in self.usage.consumed
        return shared or device in self.usage.holders

    def shares(self, device: Device) -> bool:
        """Whether several requests may have the device."""
        return device.spec.allow_multiple_allocations and self.features.consumable_capacity

    def is_free(self, ask: Ask, device: Device) -> bool:
        """Whether no other claim keeps the request from having the device, but for shares."""
        if ask.admin_access:
            return True
        holders = self.usage.holders
        return device.id not in holders if self.shares(device) else not self.in_use(device.id)

    def takes(self, ask: Ask, device: Device) -> Consumed | None:
        """What the request takes of the device's capacity, None where it cannot give that.

        Raises: CapacityError.
        """
        if not self.features.consumable_capacity:
            return Consumed()
        return consumed(device, ask.capacity, self.features.capacity)

    def tolerated(self, ask: Ask, device: Device) -> bool:
        """Whether the request puts up with the device's taints."""
        if not device.spec.taints or not self.features.taints:
            return True
        return all(
            taint.effect not in HARD or any(t.tolerates(taint) for t in ask.tolerations)
            for taint in device.spec.taints
        )
