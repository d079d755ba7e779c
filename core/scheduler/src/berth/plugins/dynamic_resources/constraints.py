"""What devices of different requests have to have in common, followed while the search adds and removes them.

A request may derive an attribute of that name from each device (KEP-6080). An attribute may have several
values (KEP-5491): devices that match have one in common, all of them, and of distinct devices no two have one
in common.

Source: dynamic-resource-allocation structured/internal/stable/allocator_stable.go matchAttributeConstraint
(Kubernetes v1.36).
"""

from collections.abc import Iterable, Sequence

from berth.cel import look_at_nothing
from berth.objects.devices.resource_claims import DeviceConstraint
from berth.plugins.dynamic_resources.asking import Ask
from berth.plugins.dynamic_resources.device_values import Values, all_values, find_attribute, single_values
from berth.plugins.dynamic_resources.devices import Device
from berth.plugins.dynamic_resources.supply import Features


class DeviceConstraintState:
    """One constraint of a claim, and the values of the devices that were added under it.

    Up to 1.36, a constraint to be distinct keeps one value for each request, that of its last device, and
    none once a device of the request was counted out: a device differs from the one before at least. From
    1.37 on it keeps the values of `all_differ` devices (kubernetes/kubernetes#140600). Without `lists`, an
    attribute that is a list has no value that could be compared: its device agrees with no other.
    """

    __slots__ = (
        "_all_differ",
        "_attribute",
        "_common",
        "_derives",
        "_last",
        "_lists",
        "_requests",
        "_values",
        "distinct",
    )

    def __init__(
        self,
        constraint: DeviceConstraint,
        *,
        all_differ: bool = False,
        lists: bool = False,
        derives: bool = False,
    ) -> None:
        self._lists, self._derives = lists, derives
        self._values = all_values if lists else single_values
        self.distinct = constraint.match_attribute is None
        self._all_differ = self.distinct and all_differ
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._requests = frozenset(constraint.requests)
        self._common: list[Values] = []
        """For each device that was added, its values; to match, those that all before it have, too."""
        self._last: dict[str, Values] = {}

    @property
    def state(self) -> object:
        """All that decides which devices further requests may add."""
        if self._all_differ:
            return frozenset(self._common)
        if self.distinct:
            return frozenset(self._last.values())
        return self.wanted

    @property
    def compares_neighbours(self) -> bool:
        """Whether devices of one request are only held to differ from the one before."""
        return self.distinct and not self._all_differ

    @property
    def wanted(self) -> Values | None:
        """The values of which further devices have to have one; None where that is open."""
        return self._common[-1] if self._common and not self.distinct else None

    def derived_by(self, ask: Ask) -> str | None:
        """The expression by which the request makes the attribute itself; None where it is the device's."""
        return ask.derived.get(self._attribute) if self._derives else None

    def ways(self, asks: Iterable[Ask]) -> list[str | None]:
        """The expressions by which these requests make the attribute, and None for that of devices."""
        return list(dict.fromkeys((None, *(self.derived_by(ask) for ask in asks if self.concerns(ask)))))

    def values_of(self, device: Device, derived: str | None = None) -> Values | None:
        """The device's values, None where it has none: then it can never be added.

        With `derived`, what that expression makes of it. Raises: DeviceSelectorError.
        """
        if derived is not None:
            found = device.kind.derived(derived, device.id, look_at_nothing)
            return found.values if self._lists or not found.is_list else frozenset()
        attribute = find_attribute(device.id.driver, device.spec, self._attribute)
        return None if attribute is None else self._values(attribute)

    def concerns(self, ask: Ask) -> bool:
        """Whether devices for it are held to the constraint."""
        return not self._requests or ask.request in self._requests or ask.name in self._requests

    def add(self, ask: Ask, device: Device) -> bool:
        """Count the device in if it agrees with those before. Raises: DeviceSelectorError."""
        values = self.values_of(device, self.derived_by(ask))
        if values is None or not self._agrees(values):
            return False
        if self.compares_neighbours:
            self._last[ask.name] = values
        else:
            self._common.append(values if self.wanted is None else values & self.wanted)
        return True

    def remove(self, ask: Ask) -> None:
        """Count the last device out, which was one for that request."""
        if self.compares_neighbours:
            self._last.pop(ask.name, None)
        else:
            self._common.pop()

    def _agrees(self, values: Values) -> bool:
        if self.distinct:
            others = self._common if self._all_differ else self._last.values()
            return not others or (bool(values) and all(map(values.isdisjoint, others)))
        return self.wanted is None or not self.wanted.isdisjoint(values)


def add_all(
    constraints: Iterable[DeviceConstraintState], ask: Ask, device: Device
) -> list[DeviceConstraintState] | None:
    """Count the device in everywhere; None, and nowhere, where one constraint does not hold."""
    added: list[DeviceConstraintState] = []
    for constraint in constraints:
        if not constraint.add(ask, device):
            for earlier in added:
                earlier.remove(ask)
            return None
        added.append(constraint)
    return added


def constraint_states(
    constraints: Sequence[DeviceConstraint], features: Features
) -> list[DeviceConstraintState]:
    """The constraints before any device was added."""
    kinds = {
        "all_differ": features.rules.distinct_attributes_of_all,
        "lists": features.list_attributes,
        "derives": features.derived_attributes,
    }
    return [DeviceConstraintState(constraint, **kinds) for constraint in constraints]
