"""Pools of devices: what the slices of a pool's newest generation publish together.

Source: dynamic-resource-allocation structured/internal/stable/pools_stable.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Iterable, Sequence

from berth.objects.devices.devices import DeviceSpec, ResourceSlice
from berth.objects.node_selector import NodeSelector
from berth.objects.quantity import nanos
from berth.plugins.dynamic_resources.devices import CounterId, Device, DeviceId, DeviceKind, Target

KindOf = Callable[[str, DeviceSpec], DeviceKind]
"""The kind of a driver's device."""


class DevicePool:
    """The devices of a pool's newest generation.

    `problem` says why nothing may be allocated from it: slices are missing, or contradict each other.
    """

    __slots__ = (
        "counters",
        "devices",
        "driver",
        "invalid",
        "name",
        "place_of",
        "places",
        "problem",
        "slices",
        "waits_to_bind",
    )

    def __init__(self, driver: str, name: str, slices: Sequence[ResourceSlice], kind_of: KindOf) -> None:
        self.driver = driver
        self.name = name
        self.slices = slices
        self.devices = [
            Device(DeviceId(driver, name, spec.name), spec, _target(part, spec), kind_of(driver, spec))
            for part in slices
            for spec in part.spec.devices
        ]
        self.place_of = {device.id.device: place for place, device in enumerate(self.devices)}
        """The place of each device by its name."""
        self.places: dict[Target, list[int]] = {}
        """The places of the devices by who reaches them."""
        for place, device in enumerate(self.devices):
            self.places.setdefault(device.target, []).append(place)
        self.counters: dict[CounterId, int] = {
            CounterId(driver, name, counter_set.name, counter): nanos(amount.value)
            for part in slices
            for counter_set in part.spec.shared_counters
            for counter, amount in counter_set.counters.items()
        }
        self.waits_to_bind = any(device.spec.binding_conditions for device in self.devices)
        """Whether some device has conditions that binding waits for."""
        incomplete = len(slices) != slices[0].spec.pool.resource_slice_count
        self.invalid = not incomplete and self._contradicts_itself(slices)
        self.problem = "is currently being updated" if incomplete else ""
        if self.invalid:
            self.problem = "is currently invalid"

    def _contradicts_itself(self, slices: Sequence[ResourceSlice]) -> bool:
        sets = [s.name for part in slices for s in part.spec.shared_counters]
        return (
            len(self.place_of) != len(self.devices)
            or len(set(sets)) != len(sets)
            or any(counter not in self.counters for device in self.devices for counter in device.consumes)
        )

    @property
    def full_name(self) -> str:
        """The pool as `driver/name`."""
        return f"{self.driver}/{self.name}"

    def made_of(self, slices: Sequence[ResourceSlice]) -> bool:
        """Whether it was made of these very slices."""
        return len(slices) == len(self.slices) and all(map(_same, slices, self.slices))


def _same(one: ResourceSlice, other: ResourceSlice) -> bool:
    return one is other


def _target(part: ResourceSlice, device: DeviceSpec) -> Target:
    place = device if part.spec.per_device_node_selection else part.spec
    if place.node_name:
        return place.node_name
    if place.node_selector is not None:
        return place.node_selector
    # What names no nodes at all is reached by none; the empty selector says so.
    return None if place.all_nodes else NodeSelector()


def newest(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], list[ResourceSlice]]:
    """The slices of each pool's newest generation, sorted by name; pools by driver and name."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for part in sorted(slices, key=lambda s: s.name):
        parts = pools.setdefault((part.spec.driver, part.spec.pool.name), [])
        if parts and parts[0].spec.pool.generation > part.spec.pool.generation:
            continue
        if parts and parts[0].spec.pool.generation < part.spec.pool.generation:
            parts.clear()
        parts.append(part)
    return pools
