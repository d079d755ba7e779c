"""What devices of different requests have to have in common, followed while the search adds and removes them.

Source: dynamic-resource-allocation structured/internal/stable/allocator_stable.go matchAttributeConstraint
(Kubernetes v1.36).
"""

from collections.abc import Iterable

from berth.objects.devices import DeviceAttribute
from berth.objects.resource_claims import DeviceConstraint
from berth.plugins.dynamic_resources.asking import Ask
from berth.plugins.dynamic_resources.device_values import find_attribute
from berth.plugins.dynamic_resources.inventory import Device


class Constraint:
    """One constraint of a claim, and the values of the devices that were added under it.

    Up to 1.36, a constraint to be distinct keeps one value for each request, that of its last device, and
    none once a device of the request was counted out: a device differs from the one before at least. From
    1.37 on it keeps the values of `all_differ` devices (kubernetes/kubernetes#140600).
    """

    __slots__ = ("_all_differ", "_attribute", "_common", "_last", "_requests", "distinct")

    def __init__(self, constraint: DeviceConstraint, *, all_differ: bool = False) -> None:
        self.distinct = constraint.match_attribute is None
        self._all_differ = self.distinct and all_differ
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._requests = frozenset(constraint.requests)
        self._common: list[DeviceAttribute] = []
        self._last: dict[str, DeviceAttribute] = {}

    @property
    def state(self) -> object:
        """All that decides which devices further requests may add."""
        if self._all_differ:
            return frozenset(self._common)
        if self.distinct:
            return frozenset(self._last.values())
        return self._common[0] if self._common else None

    @property
    def compares_neighbours(self) -> bool:
        """Whether devices of one request are only held to differ from the one before."""
        return self.distinct and not self._all_differ

    @property
    def wanted(self) -> DeviceAttribute | None:
        """The value that further devices have to have; None where that is open, or no one value."""
        return self._common[0] if self._common and not self.distinct else None

    def value_of(self, device: Device) -> DeviceAttribute | None:
        """The device's value, None where it has none: then it can never be added."""
        return find_attribute(device.id.driver, device.spec, self._attribute)

    def concerns(self, ask: Ask) -> bool:
        """Whether devices for it are held to the constraint."""
        return not self._requests or ask.request in self._requests or ask.name in self._requests

    def add(self, ask: Ask, device: Device) -> bool:
        """Count the device in if it agrees with those before."""
        value = self.value_of(device)
        if value is None or not self._agrees(value):
            return False
        if self.compares_neighbours:
            self._last[ask.name] = value
        else:
            self._common.append(value)
        return True

    def remove(self, ask: Ask) -> None:
        """Count the last device out, which was one for that request."""
        if self.compares_neighbours:
            self._last.pop(ask.name, None)
        else:
            self._common.pop()

    def _agrees(self, value: DeviceAttribute) -> bool:
        if self._all_differ:
            return value not in self._common
        if self.distinct:
            return value not in self._last.values()
        return not self._common or self._common[0] == value


def add_all(constraints: Iterable[Constraint], ask: Ask, device: Device) -> list[Constraint] | None:
    """Count the device in everywhere; None, and nowhere, where one constraint does not hold."""
    added: list[Constraint] = []
    for constraint in constraints:
        if not constraint.add(ask, device):
            for earlier in added:
                earlier.remove(ask)
            return None
        added.append(constraint)
    return added
