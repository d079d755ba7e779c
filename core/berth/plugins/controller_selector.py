"""The selector of a pod's siblings, deduced from the services and the controller that own it.

Source: pkg/scheduler/framework/plugins/helper/spread.go (Kubernetes v1.36).
"""

from collections.abc import Iterable

from berth.framework.listers import Listers
from berth.objects.api_object import OwnerReference
from berth.objects.label_selector import InvalidSelectorError, Selector, compile_selector, from_labels
from berth.objects.pod import Pod


def controller_selector(pod: Pod, listers: Listers) -> Selector:
    """The selector that the pod's services and its controller share; empty where it has none of them."""
    labels = _of_services(pod, listers)
    owner = next((o for o in pod.metadata.owner_references if o.controller), None)
    if owner is None:
        return from_labels(labels)
    match owner.api_version, owner.kind:
        case "v1", "ReplicationController":
            controller = listers.replication_controllers.get(owner.name, pod.namespace)
            more = controller.spec.selector if controller is not None else None
            return from_labels(labels | (more or {}))
        case "apps/v1", "ReplicaSet" | "StatefulSet":
            return _with_workload(from_labels(labels), owner, pod, listers)
    return from_labels(labels)


def _of_services(pod: Pod, listers: Listers) -> dict[str, str]:
    labels: dict[str, str] = {}
    for service in listers.services.in_namespace(pod.namespace):
        selector = service.spec.selector
        if selector is not None and _subset(selector.items(), pod.labels):
            labels |= selector
    return labels


def _subset(pairs: Iterable[tuple[str, str]], labels: dict[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in pairs)


def _with_workload(selector: Selector, owner: OwnerReference, pod: Pod, listers: Listers) -> Selector:
    sets = listers.replica_sets if owner.kind == "ReplicaSet" else listers.stateful_sets
    workload = sets.get(owner.name, pod.namespace)
    if workload is None:
        return selector
    try:
        return selector.and_also(compile_selector(workload.spec.selector).requirements)
    except InvalidSelectorError:
        return selector
