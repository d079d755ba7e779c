"""How much of a device's capacity a request takes.

Source: dynamic-resource-allocation structured allocator, consumable capacity (Kubernetes v1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.objects.devices import CapacityPolicy, DeviceCapacity
from berth.objects.node import Amount
from berth.objects.quantity import as_binary, ceil_div, nanos, whole
from berth.plugins.dynamic_resources.device_values import split_name
from berth.plugins.dynamic_resources.inventory import Device


@dataclass(frozen=True, slots=True)
class Consumed:
    """What one use of a device takes, by capacity: in nanos, and as it is written."""

    nanos: dict[str, int] = field(default_factory=dict)
    amounts: dict[str, Amount] = field(default_factory=dict)


def consumed(device: Device, wanted: Mapping[str, Amount]) -> Consumed | None:
    """What one use of the device takes of each of its capacities; None where it cannot give what is wanted.

    What nothing is wanted of is taken at its default, or as a whole.
    """
    capacities = device.spec.capacity
    driver = device.id.driver
    known = {split_name(name, driver) for name in capacities}
    by_name = {split_name(name, driver): amount for name, amount in wanted.items()}
    if not by_name.keys() <= known:
        return None
    taken = Consumed()
    for name, capacity in capacities.items():
        amount = _taken(capacity, by_name.get(split_name(name, driver)))
        if amount is None or nanos(amount) > device.capacity[name]:
            return None
        taken.nanos[name], taken.amounts[name] = nanos(amount), amount
    return taken


def _taken(capacity: DeviceCapacity, wanted: Amount | None) -> Amount | None:
    policy = capacity.request_policy
    if wanted is None:
        default = policy.default if policy else None
        return capacity.value if default is None else default
    return wanted if policy is None else _rounded(policy, wanted)


def _rounded(policy: CapacityPolicy, wanted: Amount) -> Amount | None:
    """The smallest allowed amount that covers what is wanted, None where none does."""
    if policy.valid_values:
        enough = (value for value in policy.valid_values if nanos(value) >= nanos(wanted))
        return min(enough, key=nanos, default=None)
    if policy.valid_range is None or policy.valid_range.min is None:
        return wanted
    least, step, most = policy.valid_range.min, policy.valid_range.step, policy.valid_range.max
    amount = max(least, wanted, key=nanos)
    if step is not None and nanos(amount) > nanos(least):
        if nanos(step) <= 0:
            return None
        amount = _stepped(*(whole(nanos(each)) for each in (least, step, amount)))
    return None if most is not None and nanos(amount) > nanos(most) else amount


def _stepped(least: int, step: int, wanted: int) -> Amount:
    """The least amount, and as many steps as are needed; it is worked out in whole units."""
    return as_binary(least + ceil_div(wanted - least, step) * step)
