"""What devices of different requests have to have in common, followed while the search adds and removes them.

Source: spec/plugins.md 5.19 (allocator).
"""

from collections.abc import Iterable

from berth.objects.devices import DeviceAttribute
from berth.objects.resource_claims import DeviceConstraint
from berth.plugins.dynamic_resources.asking import Ask
from berth.plugins.dynamic_resources.device_values import find_attribute
from berth.plugins.dynamic_resources.inventory import Device


class Constraint:
    """One constraint of a claim, and the values of the devices that were added under it."""

    __slots__ = ("_attribute", "_distinct", "_requests", "_values")

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._distinct = constraint.match_attribute is None
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._requests = frozenset(constraint.requests)
        self._values: list[DeviceAttribute] = []

    def concerns(self, ask: Ask) -> bool:
        """Whether devices for it are held to the constraint."""
        return not self._requests or ask.request in self._requests or ask.name in self._requests

    def add(self, device: Device) -> bool:
        """Count the device in if it agrees with those before."""
        value = find_attribute(device.id.driver, device.spec, self._attribute)
        if value is None or not self._agrees(value):
            return False
        self._values.append(value)
        return True

    def remove(self) -> None:
        """Count the last device out."""
        self._values.pop()

    def _agrees(self, value: DeviceAttribute) -> bool:
        if self._distinct:
            return value not in self._values
        return not self._values or self._values[0] == value


def add_all(constraints: Iterable[Constraint], device: Device) -> list[Constraint] | None:
    """Count the device in everywhere; None, and nowhere, where one constraint does not hold."""
    added: list[Constraint] = []
    for constraint in constraints:
        if not constraint.add(device):
            for earlier in added:
                earlier.remove()
            return None
        added.append(constraint)
    return added
