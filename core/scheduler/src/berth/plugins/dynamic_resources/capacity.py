"""How much of a device's capacity a request takes.

Source: dynamic-resource-allocation structured allocator, consumable capacity (Kubernetes v1.36; v1.37 for
fractional ranges and what is an error).
"""

from collections.abc import Mapping

import msgspec

from berth.objects.devices.devices import CapacityPolicy, CapacityRange, DeviceCapacity
from berth.objects.node import Amount
from berth.objects.quantity import (
    MAX_NANOS,
    NANOS,
    NANOS_PER_MILLI,
    as_binary,
    as_decimal,
    ceil_div,
    is_binary,
    nanos,
    whole,
)
from berth.plugins.dynamic_resources.device_values import plain_name
from berth.plugins.dynamic_resources.devices import Device

NOT_REPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"
NEGATIVE = "capacity value is negative"


class CapacityError(Exception):
    """A request that no device can count; the text is upstream's."""


class CapacityRules(msgspec.Struct, frozen=True):
    """What releases and gates say of capacities (`berth.config.releases`)."""

    qualified_names: bool = False
    checked: bool = False
    steps_keep_their_form: bool = False
    fractional: bool = False
    """Whether ranges with fractions are counted in thousandths (gate DRAFractionalCapacityRange)."""

    def key(self, name: str, driver: str) -> str:
        """The name that stands for all ways to write this one."""
        return plain_name(name, driver) if self.qualified_names else name


AS_WRITTEN = CapacityRules()


class Consumed(msgspec.Struct, frozen=True):
    """What one use of a device takes, by capacity: in nanos, and as it is written."""

    nanos: dict[str, int] = msgspec.field(default_factory=dict)
    amounts: dict[str, Amount] = msgspec.field(default_factory=dict)


def consumed(device: Device, wanted: Mapping[str, Amount], rules: CapacityRules) -> Consumed | None:
    """What one use of the device takes of each of its capacities; None where it cannot give what is wanted.

    What nothing is wanted of is taken at its default, or as a whole.
    Raises: CapacityError.
    """
    driver = device.id.driver
    capacities = {name: rules.key(name, driver) for name in device.spec.capacity}
    by_key = {rules.key(name, driver): amount for name, amount in wanted.items()}
    if not by_key.keys() <= set(capacities.values()):
        return None
    taken, fits = Consumed(), True
    for name, capacity in device.spec.capacity.items():
        asked = by_key.get(capacities[name])
        try:
            amount = _taken(capacity, asked, rules)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from error
        if amount is None or nanos(amount) > device.capacity[name]:
            fits = False
        elif rules.checked and nanos(amount) < 0:
            if asked is not None:
                raise CapacityError(f'capacity "{name}": {NEGATIVE}')
            fits = False
        else:
            taken.nanos[name], taken.amounts[name] = nanos(amount), amount
    return taken if fits else None


def _taken(capacity: DeviceCapacity, wanted: Amount | None, rules: CapacityRules) -> Amount | None:
    policy = capacity.request_policy
    if wanted is None:
        default = policy.default if policy else None
        return capacity.value if default is None else default
    return wanted if policy is None else _rounded(policy, wanted, rules)


def _rounded(policy: CapacityPolicy, wanted: Amount, rules: CapacityRules) -> Amount | None:
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
        unit = NANOS_PER_MILLI if rules.fractional and _in_thousandths(policy.valid_range) else NANOS
        if rules.checked:
            _check_representable(wanted, unit)
        amount = _stepped(least, step, wanted, unit, rules)
    return None if most is not None and nanos(amount) > nanos(most) else amount


def _in_thousandths(given: CapacityRange) -> bool:
    """Whether some amount of the range is a fraction, and all are whole thousandths."""
    amounts = [nanos(each) for each in (given.min, given.max, given.step) if each is not None]
    return any(each % NANOS for each in amounts) and not any(each % NANOS_PER_MILLI for each in amounts)


def _check_representable(wanted: Amount, unit: int) -> None:
    amount = nanos(wanted)
    if unit == NANOS and amount >= MAX_NANOS:
        raise CapacityError(f"{NOT_REPRESENTABLE}: request {wanted} exceeds MaxInt64")
    if unit != NANOS and (amount % unit or amount >= MAX_NANOS // (NANOS // unit)):
        raise CapacityError(f"{NOT_REPRESENTABLE}: request {wanted} is not a representable milli value")


def _stepped(least: Amount, step: Amount, wanted: Amount, unit: int, rules: CapacityRules) -> Amount:
    """The least amount, and as many steps as are needed; it is worked out in those units."""
    start, each, asked = (
        (whole(nanos(amount)) * NANOS if unit == NANOS else nanos(amount)) for amount in (least, step, wanted)
    )
    found = start + ceil_div(asked - start, each) * each
    if rules.steps_keep_their_form and not is_binary(step):
        return as_decimal(found)
    return as_binary(found)
