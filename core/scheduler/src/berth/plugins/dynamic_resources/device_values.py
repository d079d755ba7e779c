"""A device as expressions see it: `device.driver`, `device.attributes`, `device.capacity`.

Source: dynamic-resource-allocation cel/compile.go (Kubernetes v1.36).
"""

from typing import Any

from berth.cel.values import DefaultMap, Quantity, Semver
from berth.objects.devices.devices import DeviceAttribute, DeviceSpec

AttributeValue = int | bool | str | Semver | list[int] | list[bool] | list[str] | list[Semver]
Values = frozenset[tuple[str, int | bool | str]]
"""What an attribute says, each value with its type: 1, true and "1" are three."""


def attribute_value(attribute: DeviceAttribute) -> AttributeValue | None:
    """The list that is set, or the one value."""
    lists = attribute.integers, attribute.booleans, attribute.strings
    values = next((values for values in lists if values is not None), None)
    if values is not None:
        return list[Any](values)
    if attribute.versions is not None:
        return [Semver.parse(version) for version in attribute.versions]
    return _single(attribute)


def _single(attribute: DeviceAttribute) -> AttributeValue | None:
    if attribute.integer is not None:
        return attribute.integer
    if attribute.boolean is not None:
        return attribute.boolean
    if attribute.string is not None:
        return attribute.string
    return None if attribute.version is None else Semver.parse(attribute.version)


def single_values(attribute: DeviceAttribute) -> Values:
    """The one value that is set; nothing where it is a list."""
    fields = {
        "int": attribute.integer,
        "bool": attribute.boolean,
        "string": attribute.string,
        "version": attribute.version,
    }
    return frozenset((kind, value) for kind, value in fields.items() if value is not None)


def all_values(attribute: DeviceAttribute) -> Values:
    """The values of a list, or the one that is set."""
    fields = {
        "int": attribute.integers,
        "bool": attribute.booleans,
        "string": attribute.strings,
        "version": attribute.versions,
    }
    listed = {kind: values for kind, values in fields.items() if values is not None}
    if not listed:
        return single_values(attribute)
    return frozenset((kind, value) for kind, values in listed.items() for value in values)


def derived_values(answer: Any) -> Values | None:
    """What an expression gave, as an attribute would say it; None where no attribute has such values."""
    found = [_typed(each) for each in (answer if isinstance(answer, list | tuple) else (answer,))]
    known = [each for each in found if each is not None]
    return frozenset(known) if len(known) == len(found) else None


def _typed(value: Any) -> tuple[str, int | bool | str] | None:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return "int", value
    if isinstance(value, str):
        return "string", value
    return ("version", str(value)) if isinstance(value, Semver) else None


def device_variable(driver: str, device: DeviceSpec) -> dict[str, Any]:
    """The value of the variable `device`; names without a domain belong to the driver's.

    Raises: CELError where an amount or a version does not parse.
    """
    attributes, capacity = DefaultMap(), DefaultMap()
    for name, attribute in device.attributes.items():
        domain, local = split_name(name, driver)
        attributes.setdefault(domain, {})[local] = attribute_value(attribute)
    for name, amount in device.capacity.items():
        domain, local = split_name(name, driver)
        capacity.setdefault(domain, {})[local] = Quantity.parse(amount.value)
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and name of a qualified name; the driver is the domain of a plain one."""
    domain, slash, local = name.rpartition("/")
    return (domain, local) if slash else (driver, name)


def plain_name(name: str, driver: str) -> str:
    """The name without its domain where that is the driver."""
    return name.removeprefix(f"{driver}/")


def find_attribute(driver: str, device: DeviceSpec, name: str) -> DeviceAttribute | None:
    """The device's attribute of that qualified name, however the device writes it."""
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, local = split_name(name, driver)
    return device.attributes.get(local) if domain == driver else None
