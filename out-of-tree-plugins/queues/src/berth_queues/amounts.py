"""Amounts of resources: CPU in thousandths of a core, anything else in units, pods counted as `pods`."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from berth_sdk import Pod
from berth_sdk.quantity import units

Amounts: TypeAlias = Mapping[str, int]

PODS = "pods"
DEVICES = ".deviceclass.resource.k8s.io/devices"
"""The end of what devices of a class are called as a resource, as ResourceQuotas have it."""
MAX_RESOURCES = 64
"""In one field of an object."""

_SUFFIXES = {40: "Ti", 30: "Gi", 20: "Mi", 10: "Ki"}


def requests_of(pod: Pod) -> Amounts:
    """Return what the scheduler counts for a pod, resources of which it wants nothing left out."""
    amounts = {name: pod.request(name) for name in set(_named(pod))}
    return {name: amount for name, amount in amounts.items() if amount} | {PODS: 1}


def add(total: dict[str, int], amounts: Amounts, sign: int = 1) -> None:
    """Add amounts to a total, or take them off it."""
    for name, amount in amounts.items():
        left = total.get(name, 0) + sign * amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)


def read_amounts(field: str, quantities: Mapping[str, str | float]) -> dict[str, int]:
    """Return the amounts of an object's field.

    Raises: ValueError: one is no quantity, is negative, or there are too many.
    """
    if len(quantities) > MAX_RESOURCES:
        raise ValueError(f"{field}: more than {MAX_RESOURCES} resources")
    amounts = {}
    for name, quantity in quantities.items():
        try:
            amounts[name] = units(name, quantity)
        except ValueError as error:
            raise ValueError(f"{field}.{name}: {error}") from None
        if amounts[name] < 0:
            raise ValueError(f"{field}.{name}: {quantity} is below zero")
    return amounts


def room(left: Amounts) -> str:
    """Return what is left of these resources, in words from which `berth explain` proposes requests."""
    return ", ".join(f"at most {written(name, max(0, amount))} of {name}" for name, amount in left.items())


def written(name: str, amount: int) -> str:
    """Return the amount as manifests have it."""
    if name == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    bits = next((bits for bits in _SUFFIXES if amount and not amount % (1 << bits)), 0)
    return f"{amount >> bits}{_SUFFIXES[bits]}" if bits else str(amount)


def _named(pod: Pod) -> Iterator[str]:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        yield from container.resources.requests
    yield from pod.spec.overhead
    yield from pod.spec.resources.requests
