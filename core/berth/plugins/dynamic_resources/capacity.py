"""How much of a device's capacity a request takes.

Source: dynamic-resource-allocation structured allocator, consumable capacity (Kubernetes v1.36).
"""

from collections.abc import Mapping

from berth.objects.devices import CapacityPolicy, DeviceCapacity
from berth.objects.quantity import ceil_div, nanos
from berth.plugins.dynamic_resources.device_values import split_name
from berth.plugins.dynamic_resources.inventory import Device


def consumed(device: Device, wanted: Mapping[str, int]) -> dict[str, int] | None:
    """What one use of the device takes of each of its capacities; None where it cannot give what is wanted.

    What nothing is wanted of is taken at its default, or as a whole. Units: nanos.
    """
    capacities = device.spec.capacity
    driver = device.id.driver
    known = {split_name(name, driver) for name in capacities}
    by_name = {split_name(name, driver): amount for name, amount in wanted.items()}
    if not by_name.keys() <= known:
        return None
    taken: dict[str, int] = {}
    for name, capacity in capacities.items():
        amount = _taken(capacity, by_name.get(split_name(name, driver)))
        if amount is None or amount > device.capacity[name]:
            return None
        taken[name] = amount
    return taken


def _taken(capacity: DeviceCapacity, wanted: int | None) -> int | None:
    policy = capacity.request_policy
    if wanted is None:
        default = policy.default if policy else None
        return nanos(capacity.value if default is None else default)
    return wanted if policy is None else _rounded(policy, wanted)


def _rounded(policy: CapacityPolicy, wanted: int) -> int | None:
    """The smallest allowed amount that covers what is wanted, None where none does."""
    if policy.valid_values:
        return min((v for v in map(nanos, policy.valid_values) if v >= wanted), default=None)
    if policy.valid_range is None or policy.valid_range.min is None:
        return wanted
    least = nanos(policy.valid_range.min)
    amount = max(wanted, least)
    if policy.valid_range.step is not None:
        step = nanos(policy.valid_range.step)
        amount = least + ceil_div(amount - least, step) * step
    if policy.valid_range.max is not None and amount > nanos(policy.valid_range.max):
        return None
    return amount
