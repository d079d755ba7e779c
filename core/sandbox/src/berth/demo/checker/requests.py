"""What a pod takes from its node: the API's definition, on the document.

Regular containers add up; sidecars (init containers that restart) run beside them; ordinary init containers
run before them, one at a time, beside the sidecars that stand earlier. A limit alone is a request as well.
Amounts at the pod's level replace cpu, memory and huge pages; overhead comes on top. While a container is
resized, the largest of the wanted, the allotted and the actual amount counts, or without the wanted one where
that was found infeasible.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from berth.demo.checker.quantity import amounts

Amounts = dict[str, Fraction]


def pod_requests(pod: Mapping[str, Any]) -> Amounts:
    """Give the amounts that a node must set aside for the pod, by resource.

    Raises:
        UnreadableError: an amount is no quantity.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    infeasible = _resize_is_infeasible(status)
    total = _containers(spec, status, infeasible=infeasible)
    at_pod_level = amounts((spec.get("resources") or {}).get("requests"))
    if any(_may_stand_at_pod_level(name) for name in at_pod_level):
        effective = _while_resized(at_pod_level, status, infeasible=infeasible)
        total |= {
            name: effective.get(name, Fraction(0)) for name in at_pod_level if _may_stand_at_pod_level(name)
        }
    return _sum((total, amounts(spec.get("overhead"))))


def _containers(spec: Mapping[str, Any], status: Mapping[str, Any], *, infeasible: bool) -> Amounts:
    statuses = {
        entry.get("name"): entry
        for field in ("containerStatuses", "initContainerStatuses")
        for entry in status.get(field) or ()
    }

    def wanted(container: Mapping[str, Any], *, resizable: bool = True) -> Amounts:
        resources = container.get("resources") or {}
        requests = amounts(resources.get("limits")) | amounts(resources.get("requests"))
        state = statuses.get(container.get("name")) or {}
        return _while_resized(requests, state, infeasible=infeasible) if resizable else requests

    running = [wanted(container) for container in spec.get("containers") or ()]
    sidecars: list[Amounts] = []
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        if is_sidecar(container):
            sidecars.append(wanted(container))
        else:
            peak = _largest((peak, _sum((*sidecars, wanted(container, resizable=False)))))
    return _largest((_sum((*running, *sidecars)), peak))


def is_sidecar(init_container: Mapping[str, Any]) -> bool:
    """Tell whether an init container keeps running beside the regular ones."""
    return init_container.get("restartPolicy") == "Always"


def _while_resized(requests: Amounts, status: Mapping[str, Any], *, infeasible: bool) -> Amounts:
    if status.get("resources") is None:
        return requests
    actual = amounts(status["resources"].get("requests"))
    allotted = amounts(status.get("allocatedResources"))
    return _largest((actual, allotted) if infeasible else (requests, actual, allotted))


def _resize_is_infeasible(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions") or ()
    reasons = [c.get("reason") for c in conditions if c.get("type") == "PodResizePending"]
    return reasons[:1] == ["Infeasible"]


def _may_stand_at_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _largest(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = max(total.get(name, amount), amount)
    return total
