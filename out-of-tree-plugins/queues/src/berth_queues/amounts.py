"""Amounts of resources: CPU in thousandths of a core, anything else in units, pods counted as `pods`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from berth_sdk import Pod

Amounts: TypeAlias = Mapping[str, int]

PODS = "pods"

_SUFFIXES = {40: "Ti", 30: "Gi", 20: "Mi", 10: "Ki"}


def requests_of(pod: Pod) -> Amounts:
    """Return what the scheduler counts for a pod, resources of which it wants nothing left out."""
    amounts = {name: pod.request(name) for name in set(_named(pod))}
    return {name: amount for name, amount in amounts.items() if amount} | {PODS: 1}


def add(total: dict[str, int], amounts: Amounts, sign: int = 1) -> None:
    """Add amounts to a total, or take them off it."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + sign * amount


def excess(used: Amounts, asked: Amounts, limit: Amounts) -> list[str]:
    """Return the resources of which more would be in use than the limit names, of those asked for."""
    return sorted(
        name
        for name, amount in asked.items()
        if amount and name in limit and used.get(name, 0) + amount > limit[name]
    )


def room(names: Iterable[str], used: Amounts, limit: Amounts) -> str:
    """Return what is left of these resources, in words from which `berth explain` proposes requests."""
    left = ((name, max(0, limit[name] - used.get(name, 0))) for name in names)
    return ", ".join(f"at most {_written(name, amount)} of {name}" for name, amount in left)


def _written(name: str, amount: int) -> str:
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
