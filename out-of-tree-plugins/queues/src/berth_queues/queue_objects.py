"""Queue objects: the kind of this plugin, queues.berth.dev.

Source: kustomize/crds of the plugin, queues.yaml.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from berth_queues.amounts import read_amounts
from berth_queues.selectors import Selector
from berth_queues.tree import QueueSpec
from berth_sdk import ObjectKey, WatchedResource

QUEUES = WatchedResource("queues.berth.dev", "v1alpha1", "queues")
NAMESPACES = WatchedResource("", "v1", "namespaces")
LABEL = "queues.berth.dev/queue"
"""Of a pod, or of a namespace for its pods: the queue's name."""
KIND = "Queue"
MAX_QUEUES = 4096
MAX_NAMESPACES = 256
MAX_WEIGHT = 1_000_000
Quantities = dict[str, str | int | float]

log = logging.getLogger(__name__)


def queue_name(name: str) -> str:
    """Return what the queue of an object is called in messages."""
    return f"{KIND} {name}"


class _Spec(msgspec.Struct, rename="camel"):
    parent: str = ""
    quota: Quantities = {}
    borrowing_limit: Quantities = {}
    lending_limit: Quantities = {}
    limit: Quantities = {}
    weight: str | int | float = 1
    priority: int = 0
    capacity: Literal["Quota", "Nodes"] = "Quota"
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None


class _Document(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Metadata(msgspec.Struct):
    labels: dict[str, str] = {}


class _Namespace(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


@dataclass(frozen=True)
class QueueObject:
    """A queue, and the namespaces whose pods it admits."""

    spec: QueueSpec
    namespaces: tuple[str, ...]
    selector: Selector | None

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether pods of the namespace, which has these labels, may be in the queue."""
        return namespace in self.namespaces or (self.selector is not None and self.selector.matches(labels))


_decoder = msgspec.json.Decoder(_Document)
_namespaces = msgspec.json.Decoder(_Namespace)


@dataclass
class QueueObjects:
    """The Queue objects there are, by name, and the labels of namespaces."""

    by_name: dict[str, QueueObject] = field(default_factory=dict)
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    """Why an object is ignored, by its name."""

    def put(self, key: ObjectKey, source: bytes) -> bool:
        """Take over an object; whether that changes what counts. One that can't be read counts as none."""
        before = self.by_name.get(key.name)
        try:
            found = read(key.name, source, is_new=before is None, count=len(self.by_name))
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("queue ignored queue=%s err=%s", key.name, error)
            changed = self.remove(key) or self.errors.get(key.name) != str(error)
            self.errors[key.name] = str(error)
            return changed
        self.by_name[key.name] = found
        mended = self.errors.pop(key.name, None) is not None
        return found != before or mended

    def remove(self, key: ObjectKey) -> bool:
        """Forget an object; whether that changes what counts."""
        self.errors.pop(key.name, None)
        return self.by_name.pop(key.name, None) is not None

    def put_namespace(self, name: str, source: bytes) -> bool:
        """Take over a namespace's labels; whether they may change where its pods are."""
        labels = _namespaces.decode(source).metadata.labels
        before, self.labels[name] = self.labels.get(name, {}), labels
        return before != labels and (
            before.get(LABEL) != labels.get(LABEL) or any(each.selector for each in self.by_name.values())
        )

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        self.labels.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        for table in (self.by_name, self.labels, self.errors):
            table.clear()

    def specs(self) -> Iterable[QueueSpec]:
        """Yield the objects as queues."""
        return (each.spec for each in self.by_name.values())

    def named(self, name: str, namespace: str) -> QueueObject | None:
        """Return that queue, if it admits pods of the namespace."""
        found = self.by_name.get(name)
        if found is None or not found.admits(namespace, self.labels.get(namespace, {})):
            return None
        return found

    def of_namespace(self, namespace: str) -> str:
        """Return the queue of the namespace's pods: the one it names, or the first by name that admits it."""
        labels = self.labels.get(namespace, {})
        wanted = labels.get(LABEL)
        if wanted is not None and self.named(wanted, namespace) is not None:
            return wanted
        return next(
            (name for name in sorted(self.by_name) if self.by_name[name].admits(namespace, labels)), ""
        )


def read(name: str, source: bytes, *, is_new: bool = True, count: int = 0) -> QueueObject:
    """Return the queue that an object is; `count` are those that are there.

    Raises: msgspec.MsgspecError, ValueError: it is none, with the field.
    """
    if is_new and count >= MAX_QUEUES:
        raise ValueError(f"there are {MAX_QUEUES} queues already")
    spec = _decoder.decode(source).spec
    weight = float(spec.weight)
    if not 0 <= weight <= MAX_WEIGHT:
        raise ValueError(f"spec.weight: {spec.weight} is not between 0 and {MAX_WEIGHT}")
    if len(spec.namespaces) > MAX_NAMESPACES:
        raise ValueError(f"spec.namespaces: more than {MAX_NAMESPACES}; use spec.namespaceSelector")
    if spec.parent and spec.capacity == "Nodes":
        raise ValueError("spec.capacity: Nodes is for a queue without a parent")
    made = QueueSpec(
        queue_name(name),
        queue_name(spec.parent) if spec.parent else "",
        quota=read_amounts("spec.quota", spec.quota),
        borrowing_limit=read_amounts("spec.borrowingLimit", spec.borrowing_limit),
        lending_limit=read_amounts("spec.lendingLimit", spec.lending_limit),
        limit=read_amounts("spec.limit", spec.limit),
        weight=weight,
        priority=spec.priority,
        owns_nodes=spec.capacity == "Nodes",
    )
    return QueueObject(made, spec.namespaces, spec.namespace_selector)
