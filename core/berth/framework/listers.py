"""The API objects beside nodes and pods that plugins look things up in, as the watches last told.

Source: spec/core.md 1.7.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from berth.objects.api_object import TypedObject
from berth.objects.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

T = TypeVar("T", bound=TypedObject)

NO_LABELS: Mapping[str, str] = {}


class Store(Generic[T]):
    """Objects of one kind by key; `generation` grows with every change."""

    __slots__ = ("_by_key", "_by_namespace", "generation")

    def __init__(self) -> None:
        self._by_key: dict[str, T] = {}
        self._by_namespace: dict[str, dict[str, T]] = {}
        self.generation = 0

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name, None where there is none."""
        return self._by_namespace.get(namespace, {}).get(name)

    def in_namespace(self, namespace: str) -> Iterator[T]:
        """The objects of one namespace."""
        return iter(self._by_namespace.get(namespace, {}).values())

    def __iter__(self) -> Iterator[T]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def put(self, obj: T) -> None:
        """Add or replace an object."""
        self._by_key[obj.key] = obj
        self._by_namespace.setdefault(obj.namespace, {})[obj.name] = obj
        self.generation += 1

    def remove(self, obj: T) -> None:
        """Take an object out; one that is not here is no matter."""
        self._by_key.pop(obj.key, None)
        self._by_namespace.get(obj.namespace, {}).pop(obj.name, None)
        self.generation += 1


@dataclass(slots=True)
class Listers:
    """A store for each kind that the scheduler watches beside nodes and pods."""

    namespaces: Store[Namespace] = field(default_factory=Store)
    services: Store[Service] = field(default_factory=Store)
    replication_controllers: Store[ReplicationController] = field(default_factory=Store)
    replica_sets: Store[ReplicaSet] = field(default_factory=Store)
    stateful_sets: Store[StatefulSet] = field(default_factory=Store)
    pod_disruption_budgets: Store[PodDisruptionBudget] = field(default_factory=Store)
    others: dict[str, Store[Any]] = field(default_factory=dict)
    """Stores of further kinds, by plural resource name such as `persistentvolumeclaims`."""

    def store(self, plural: str) -> Store[Any]:
        """The store of a kind that only some plugins need."""
        return self.others.setdefault(plural, Store())

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace, none where it is not known."""
        namespace = self.namespaces.get(name)
        return namespace.labels if namespace else NO_LABELS
