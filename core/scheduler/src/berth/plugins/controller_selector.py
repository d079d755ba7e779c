"""The selector of a pod's siblings, deduced from the services and the controller that own it.

Source: pkg/scheduler/framework/plugins/helper/spread.go (Kubernetes v1.36).
"""

from typing import Any, NamedTuple, TypeAlias

from berth.framework.mirrors.listers import Listers, Store
from berth.objects.api_object import OwnerReference
from berth.objects.label_selector import (
    EVERYTHING,
    InvalidSelectorError,
    LabelSelector,
    Selector,
    TooManyValuesError,
    compile_selector,
    from_labels,
)
from berth.objects.pods.pod import Pod
from berth.objects.workloads import Service
from berth.snapshot.bounded_cache import BoundedCache

MANY_ENTRIES = 64
"""Selectors of fewer labels and values are worked out each time: that takes as long as a look-up."""
MAX_BYTES = 128 << 20
ENTRY_BYTES = 400
"""About what a label or a value of a selector takes, once it is ready to match."""

Asked: TypeAlias = dict[str, str] | LabelSelector | None
"""What a controller asks of labels."""


class _Known(NamedTuple):
    """A selector, and what the objects that it was made of ask."""

    services: tuple[Asked, ...]
    controller: Asked
    selector: Selector


class ControllerSelectors:
    """The selectors of pods' siblings; large ones are kept for as long as what they are made of stays."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._known: BoundedCache[tuple[str, ...], _Known] = BoundedCache(MAX_BYTES)
        self._generation = 0

    @property
    def generation(self) -> int:
        """Grows when a service or a controller changes."""
        listers = self._listers
        return (
            listers.services.generation
            + listers.replication_controllers.generation
            + listers.replica_sets.generation
            + listers.stateful_sets.generation
        )

    def of(self, pod: Pod) -> Selector:
        """The selector that the pod's services and its controller share; empty where it has none of them.

        Raises: InvalidSelectorError where it is too large.
        """
        try:
            return self._shared(pod)
        except TooManyValuesError as error:
            raise InvalidSelectorError(f"selector of the pod's services and controller: {error}") from error

    def _shared(self, pod: Pod) -> Selector:
        services = [each for each in self._listers.services.in_namespace(pod.namespace) if _means(each, pod)]
        owner = next((o for o in pod.metadata.owner_references if o.controller), None)
        controller = None if owner is None else self._asked_by(owner, pod.namespace)
        asked = tuple([service.spec.selector for service in services])
        if sum(map(_entries, asked), _entries(controller)) < MANY_ENTRIES:
            return _joined(asked, controller)
        kind, name = ("", "") if owner is None else (owner.kind, owner.name)
        key = (pod.namespace, kind, name, *[service.name for service in services])
        return self._remembered(key, asked, controller)

    def _asked_by(self, owner: OwnerReference, namespace: str) -> Asked:
        listers = self._listers
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                controller = listers.replication_controllers.get(owner.name, namespace)
                return controller.spec.selector if controller is not None else None
            case "apps/v1", "ReplicaSet" | "StatefulSet":
                sets = listers.replica_sets if owner.kind == "ReplicaSet" else listers.stateful_sets
                workload = sets.get(owner.name, namespace)
                # One without a selector matches nothing, which adds no requirement.
                return workload.spec.selector if workload is not None else None
        return None

    def _remembered(self, key: tuple[str, ...], asked: tuple[Asked, ...], controller: Asked) -> Selector:
        if self._generation != self.generation:
            self._forget_what_is_gone()
        known = self._known.get(key)
        if known is not None:
            if (known.services, known.controller) == (asked, controller):
                return known.selector
            self._known.drop(key)
        selector = _joined(asked, controller)
        size = ENTRY_BYTES * sum(map(_entries, asked), _entries(controller))
        self._known.put(key, _Known(asked, controller, selector), size)
        return selector

    def _forget_what_is_gone(self) -> None:
        """Something changed: keep the selectors whose controllers and services are still there."""
        self._generation, listers = self.generation, self._listers
        stores: dict[str, Store[Any]] = {
            "ReplicationController": listers.replication_controllers,
            "ReplicaSet": listers.replica_sets,
            "StatefulSet": listers.stateful_sets,
        }
        for key in list(self._known):
            namespace, kind, name, *services = key
            owned = kind not in stores or stores[kind].get(name, namespace) is not None
            if not owned or any(listers.services.get(each, namespace) is None for each in services):
                self._known.drop(key)


def _means(service: Service, pod: Pod) -> bool:
    selector = service.spec.selector
    return selector is not None and selector.items() <= pod.labels.items()


def _entries(asked: Asked) -> int:
    """How many labels and values it names."""
    if asked is None:
        return 0
    if isinstance(asked, LabelSelector):
        return len(asked.match_labels) + sum([1 + len(each.values) for each in asked.match_expressions])
    return len(asked)


def _joined(asked: tuple[Asked, ...], controller: Asked) -> Selector:
    """What asks for all of it; a controller's selector that does not parse asks for nothing."""
    labels: dict[str, str] = {}
    for each in (*asked, controller):
        if isinstance(each, dict):
            labels |= each
    selector = from_labels(labels)
    if not isinstance(controller, LabelSelector):
        return selector
    try:
        workloads = compile_selector(controller)
    except TooManyValuesError:
        raise
    except InvalidSelectorError:
        return selector
    return workloads if selector == EVERYTHING else selector.and_also(workloads.requirements)
